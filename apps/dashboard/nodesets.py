"""Folds many node names into few: ``a1-01, a1-02, a1-05`` becomes ``a1-[01-02,05]``.

Only the last run of digits is folded, and padded numbers only with those of their width, so that the short form can
be read back. Names that do not end in digits stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby

_TAIL = re.compile(r"^(.*?)(\d+)$", re.DOTALL)


def fold(names: Iterable[str]) -> str:
    """Return the names as one short text, stems in alphabetical order."""
    plain: set[str] = set()
    digits_of: dict[str, set[str]] = {}
    for name in names:
        match = _TAIL.match(name)
        if match is None:
            plain.add(name)
        else:
            digits_of.setdefault(match.group(1), set()).add(match.group(2))
    parts = [part for stem, digits in sorted(digits_of.items()) for part in _fold_stem(stem, digits)]
    return ", ".join([*sorted(plain), *parts])


def _fold_stem(stem: str, digits: set[str]) -> list[str]:
    """Fold the numbers of one stem; ``08`` and ``10`` belong together, ``8`` and ``08`` do not."""
    padded = {len(text) for text in digits if text.startswith("0") and len(text) > 1}
    numbers: dict[int, list[int]] = {}
    for text in digits:
        numbers.setdefault(len(text) if len(text) in padded else 1, []).append(int(text))
    return [_set(stem, width, sorted(found)) for width, found in sorted(numbers.items())]


def _set(stem: str, width: int, numbers: list[int]) -> str:
    if len(numbers) == 1:
        return f"{stem}{numbers[0]:0{width}d}"
    runs: list[str] = []
    for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        members = [number for _, number in run]
        first, last = f"{members[0]:0{width}d}", f"{members[-1]:0{width}d}"
        runs.append(first if first == last else f"{first}-{last}")
    return f"{stem}[{','.join(runs)}]"
