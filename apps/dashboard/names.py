"""How the pages shorten names that machines made, where the full one stands beside or behind.

Addresses, exports and commands always carry the full name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

LISTED = 3
# KAI's pod-grouper names a PodGroup pg-<owner>-<uid of the owner>.
_GROUPED = re.compile(r"^pg-(.+)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")


def short_name(name: str) -> str:
    """Return the owner's part of a PodGroup name that a controller made; any other name as it is."""
    match = _GROUPED.match(name)
    return match.group(1) if match else name


def level_word(label: str) -> str:
    """Return the last part of a level's node label, as sentences say it: ``topology.example.com/rack`` is a rack."""
    return label.rpartition("/")[2] or label


def listed(names: Sequence[str]) -> str:
    """Join names as prose; beyond a few only their number is said."""
    shown, rest = [short_path(name) for name in names[:LISTED]], len(names) - LISTED
    if rest > 0:
        return f"{', '.join(shown)} and {rest} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)


def short_path(path: str) -> str:
    """Shorten the last part of ``Kind/namespace/name``."""
    head, slash, name = path.rpartition("/")
    return f"{head}{slash}{short_name(name)}"
