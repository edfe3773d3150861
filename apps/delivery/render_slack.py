"""Writes a message as Slack's Block Kit, inside Slack's limits, with a plain fallback for phones and screen readers.

Limits are those of Slack's reference of blocks; lengths are counted in UTF-16 units of the escaped text, the
strictest reading of them. All text of one message together stays under what Slack refuses as too long.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from apps.delivery.choices import DeliveryKind
from apps.delivery.messages import Envelope, Fact, Line, Link, Message, summary_of
from apps.delivery.texts import ELLIPSIS, absolute, notes, one_line, visible

SECTION_MAX = 3000
BLOCKS_MAX = 50
FIELDS_MAX = 10
FIELD_MAX = 300
"""Slack takes 2,000; ten of them would leave no room for anything else."""
HEADER_MAX = 150
BUTTON_TEXT_MAX = 75
BUTTON_URL_MAX = 3000
ACTION_ID_MAX = 255
BUTTONS_MAX = 25
CONTEXT_MAX = 2000
FALLBACK_MAX = 4000
LINES_MAX = 20
LINE_NAME_MAX = 300
LINE_URL_MAX = 1500
FIXES_MAX = 2500

_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
# Slack has no way to write these as themselves inside its markup, so that a look-alike stands for them.
_LOOK_ALIKES = {"`": "\N{MODIFIER LETTER GRAVE ACCENT}", "*": "\N{ASTERISK OPERATOR}", "~": "\N{TILDE OPERATOR}"}
_ANGLES = str.maketrans("<>", "\u2039\u203a")
_GROUP_MENTION = re.compile(r"@(?=(?:here|channel|everyone|group)\b)", re.IGNORECASE)
_NO_ID = re.compile(r"[^A-Za-z0-9_]+")
_WORD_JOINER = "\N{WORD JOINER}"


def render(message: Message, envelope: Envelope) -> dict[str, Any]:
    """Return the body of a message without where it goes."""
    blocks = _digest(message, envelope) if envelope.kind == DeliveryKind.DIGEST else _blocks(message, envelope)
    first = envelope.first if not envelope.is_threaded else None
    words = f"{summary_of(message)} (follows: {summary_of(first)})" if first else summary_of(message)
    return {
        "text": escaped(one_line(words), FALLBACK_MAX),
        "unfurl_links": False,
        "unfurl_media": False,
        "blocks": [block for block in blocks if block][:BLOCKS_MAX],
    }


def escaped(text: str, limit: int) -> str:
    """Return visible text in which nothing is markup, cut to what Slack takes, never inside an entity."""
    return _cut([_harmless(character) for character in _no_mention(visible(text))], limit)


def _cut(parts: Sequence[str], limit: int) -> str:
    """Join the parts, or as many as leave room for the mark that says that something is missing."""
    if sum(map(_units, parts)) <= limit:
        return "".join(parts)
    kept, left = [], limit - 1
    for part in parts:
        left -= _units(part)
        if left < 0:
            break
        kept.append(part)
    return "".join(kept).rstrip() + ELLIPSIS


def _no_mention(text: str) -> str:
    return _GROUP_MENTION.sub("@" + _WORD_JOINER, text)


def _harmless(character: str) -> str:
    return _ENTITIES.get(character) or _LOOK_ALIKES.get(character, character)


def _units(text: str) -> int:
    """Return the length in UTF-16 units."""
    return len(text) + sum(character > "\uffff" for character in text)


def _blocks(message: Message, envelope: Envelope) -> list[dict[str, Any]]:
    return [
        _section(_head(message)),
        _section(_lines(message.lines, envelope.base_url)),
        _fields(message.facts),
        _section(_fixes(message)),
        _buttons(message.links, envelope.base_url),
        _context([message.context, *notes(envelope)]),
    ]


def _digest(message: Message, envelope: Envelope) -> list[dict[str, Any]]:
    place = f"{message.cluster}: " if message.cluster else ""
    header = {"type": "plain_text", "text": _plain(place + message.title, HEADER_MAX), "emoji": False}
    return [
        {"type": "header", "text": header},
        _section(_escaped_block(message.text)),
        *(_section(text) for text in _pages(message.lines, envelope.base_url)),
        _buttons(message.links, envelope.base_url),
        _context([message.context, *notes(envelope)]),
    ]


def _head(message: Message) -> str:
    """Write label and code first, then where and how much, then the sentence."""
    title = escaped(one_line(message.title), 600)
    if message.label:
        code = f" `{escaped(one_line(message.code), 60)}`" if message.code else ""
        place = f" on {escaped(one_line(message.cluster), 260)}" if message.cluster else ""
        lead = f"*{escaped(one_line(message.label), 60)}*{code}{place}: *{title}*"
        gap = "\n"
    else:
        lead, gap = f"*{title}*", " " if len(message.text) < 300 and "\n" not in message.text else "\n"
    text = escaped(message.text.strip(), SECTION_MAX - _units(lead) - 1)
    return f"{lead}{gap}{text}" if text else lead


def _lines(lines: Sequence[Line], base_url: str) -> str:
    return "\n".join(_fitting(lines[:LINES_MAX], len(lines), base_url, SECTION_MAX))


def _pages(lines: Sequence[Line], base_url: str) -> Iterable[str]:
    """Yield up to three sections of a digest's lines; only the last one says how many are missing."""
    rest = list(lines)
    for page in range(3):
        if not rest:
            return
        shown = _fitting(rest, len(rest), base_url, SECTION_MAX, is_last=page == 2)
        yield "\n".join(shown)
        rest = rest[len(shown) :]


def _fitting(lines: Sequence[Line], total: int, base_url: str, limit: int, *, is_last: bool = True) -> list[str]:
    """Return as many lines as fit, and how many more there are."""
    shown: list[str] = []
    left = limit - 30
    for line in lines:
        text = _line(line, base_url)
        left -= _units(text) + 1
        if left < 0:
            break
        shown.append(text)
    if is_last and len(shown) < total:
        shown.append(f"and {total - len(shown):,} more")
    return shown


def _line(line: Line, base_url: str) -> str:
    name = escaped(one_line(line.name), LINE_NAME_MAX)
    url = absolute(line.url, base_url).replace("&", "&amp;")
    # A bar would end the address, and a line is never worth an address that fills the section.
    shown = f"<{url}|{name}>" if url and len(url) <= LINE_URL_MAX else f"*{name}*"
    text = escaped(one_line(line.text), 600)
    return f"{shown}  {text}" if text else shown


def _fields(facts: Sequence[Fact]) -> dict[str, Any]:
    if not facts:
        return {}
    fields = [
        _mrkdwn(f"*{escaped(one_line(fact.name), 60)}*\n{escaped(one_line(fact.value), FIELD_MAX - 70) or '-'}")
        for fact in facts[:FIELDS_MAX]
    ]
    return {"type": "section", "fields": fields}


def _fixes(message: Message) -> str:
    if not message.fixes:
        return ""
    shown = [f"*{escaped(one_line(message.fixes_title), 100)}*"]
    left = FIXES_MAX - _units(shown[0]) - 30
    for place, fix in enumerate(message.fixes, start=1):
        text = f"{place}. {escaped(one_line(fix), 700)}"
        left -= _units(text) + 1
        if left < 0:
            shown.append(f"and {len(message.fixes) - place + 1:,} more")
            break
        shown.append(text)
    return "\n".join(shown)


def _buttons(links: Sequence[Link], base_url: str) -> dict[str, Any]:
    """Return the links as buttons; one without a full address is left out, for a button must lead somewhere."""
    found = [(link, absolute(link.url, base_url)) for link in links]
    elements = [
        {
            "type": "button",
            "text": {"type": "plain_text", "text": _plain(link.text, BUTTON_TEXT_MAX), "emoji": False},
            "url": url,
            "action_id": f"{place}_{_NO_ID.sub('_', link.key)}"[:ACTION_ID_MAX],
        }
        for place, (link, url) in enumerate(found)
        if url and len(url) <= BUTTON_URL_MAX
    ]
    return {"type": "actions", "elements": elements[:BUTTONS_MAX]} if elements else {}


def _context(texts: Sequence[str]) -> dict[str, Any]:
    elements = [_mrkdwn(escaped(one_line(text), CONTEXT_MAX // 2)) for text in texts if text.strip()]
    return {"type": "context", "elements": elements} if elements else {}


def _escaped_block(text: str) -> str:
    return escaped(text.strip(), SECTION_MAX)


def _section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": _mrkdwn(text)} if text else {}


def _mrkdwn(text: str) -> dict[str, Any]:
    """Return marked text in which Slack makes no links or mentions of its own accord."""
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def _plain(text: str, limit: int) -> str:
    """Return text for a place without markup, where escapes would be shown; what opens markup elsewhere is replaced."""
    return _cut(_no_mention(one_line(text)).translate(_ANGLES) or "-", limit)
