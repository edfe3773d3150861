"""YAML as plain JSON values, for dumps that ``kubectl -o yaml`` wrote and for the scheduler's configuration.

Reads events of the C parser and builds the values itself: scalars mean what they mean in JSON (no dates,
no ``yes``, no base 60), and what a dump never has and an attacker likes is refused: aliases, tags, a key
given twice, several documents, deep nesting.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import yaml

_INTEGER = re.compile(r"[-+]?\d{1,40}", re.ASCII)
_FLOAT = re.compile(r"[-+]?(\.\d+|\d+(\.\d*)?)([eE][-+]?\d{1,4})?", re.ASCII)
_WORDS: dict[str, Any] = {"": None, "~": None, "null": None, "Null": None, "NULL": None, "true": True, "True": True,
                          "TRUE": True, "false": False, "False": False, "FALSE": False}  # fmt: skip
_CLOSED = object()


class YamlError(ValueError):
    """Text that is no YAML, or has what no dump has."""


def load(data: bytes | str, *, nesting: int = 200) -> Any:
    """Return the one document in ``data`` as JSON values; ``None`` if there is none."""
    try:
        events = iter(yaml.parse(data, Loader=yaml.CSafeLoader))
        document = _document(events, nesting)
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                raise YamlError("more than one YAML document")
    except yaml.YAMLError as err:
        raise YamlError(_one_line(err)) from err
    except UnicodeDecodeError as err:
        raise YamlError("not valid UTF-8") from err
    return document


def _document(events: Iterator[yaml.Event], nesting: int) -> Any:
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            return _node(next(events), events, nesting)
    return None


def _node(event: yaml.Event, events: Iterator[yaml.Event], depth: int) -> Any:
    if depth < 0:
        raise YamlError("nested too deep")
    if isinstance(event, yaml.AliasEvent):
        raise YamlError(f"an alias (*{str(event.anchor)[:40]}), which no dump has")
    if isinstance(event, yaml.ScalarEvent):
        return _scalar(event)
    if isinstance(event, yaml.SequenceStartEvent):
        return _sequence(events, depth)
    if isinstance(event, yaml.MappingStartEvent):
        return _mapping(events, depth)
    return _CLOSED


def _sequence(events: Iterator[yaml.Event], depth: int) -> list[Any]:
    items = []
    while (item := _node(next(events), events, depth - 1)) is not _CLOSED:
        items.append(item)
    return items


def _mapping(events: Iterator[yaml.Event], depth: int) -> dict[str, Any]:
    out: dict[str, Any] = {}
    while True:
        event = next(events)
        if isinstance(event, yaml.MappingEndEvent):
            return out
        if not isinstance(event, yaml.ScalarEvent):
            raise YamlError("a key that is not text")
        if event.value in out:
            raise YamlError(f"key {event.value[:40]!r} given twice in one object")
        out[event.value] = _node(next(events), events, depth - 1)


def _scalar(event: yaml.ScalarEvent) -> Any:
    text: str = event.value
    if not event.implicit[0]:
        if event.tag is not None and event.tag not in {"tag:yaml.org,2002:str", "!"}:
            raise YamlError(f"a tag ({event.tag[:40]}), which no dump has")
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if not _FLOAT.fullmatch(text):
        return text
    if math.isinf(number := float(text)):
        raise YamlError(f"a number beyond 64 bits ({text[:40]})")
    return number


def _one_line(err: yaml.YAMLError) -> str:
    mark = getattr(err, "problem_mark", None)
    problem = getattr(err, "problem", None) or str(err)
    where = f" at line {mark.line + 1}" if mark is not None else ""
    return " ".join(f"not YAML: {problem}{where}".split())[:200]
