"""Makes text of a cluster harmless in a message: what cannot be seen becomes visible, what is too long is cut.

Knows nothing of any channel's own marks; each renderer escapes those itself.
"""

from __future__ import annotations

import unicodedata
from datetime import timedelta
from urllib.parse import urlsplit

from apps.delivery.messages import Envelope, headline
from gangdash.reasons.wording import duration

REPLACED = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
"""Control and format characters (among them zero width and right-to-left marks), surrogates, unassigned ones."""
MARK = "\N{REPLACEMENT CHARACTER}"
ELLIPSIS = "…"
LATE = timedelta(minutes=2)
"""A message that comes later than this after it was made says so."""
MAY_BE_REPEATED = "May be repeated: nobody knows whether an earlier attempt arrived."


def visible(text: str) -> str:
    """Return the text with every character that cannot be seen replaced by one that can; newlines stay."""
    return "".join(_visible(character) for character in text)


def _visible(character: str) -> str:
    if character in "\n\t":
        return character
    if unicodedata.category(character) in {"Zl", "Zp"}:
        return " "
    return MARK if unicodedata.category(character) in REPLACED else character


def one_line(text: str) -> str:
    """Return the visible text on a single line."""
    return " ".join(visible(text).split())


def clip(text: str, limit: int) -> str:
    """Cut a text to a length, and say with its last character that it was cut."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + ELLIPSIS


def absolute(url: str, base_url: str) -> str:
    """Return the full address of a link, empty where there is none that a message could carry."""
    full = base_url + url if url.startswith("/") and not url.startswith("//") else url
    parts = urlsplit(full)
    is_usable = parts.scheme in {"http", "https"} and parts.netloc and not set(full) & set(" \n\r\t<>|\"'`\\")
    return full if is_usable and full.isprintable() else ""


def notes(envelope: Envelope) -> tuple[str, ...]:
    """Return what a reader must know of the delivery itself: what it follows, that it is late or may be repeated."""
    found = []
    if envelope.first is not None and not envelope.is_threaded:
        at = f" of {envelope.first_at:%d %b %H:%M} UTC" if envelope.first_at else ""
        found.append(f"Follows the message{at}: {one_line(headline(envelope.first))}")
    lateness = envelope.now - envelope.created_at
    if lateness >= LATE:
        found.append(f"Delivered {duration(lateness.total_seconds())} late.")
    if envelope.may_repeat:
        found.append(MAY_BE_REPEATED)
    return tuple(found)
