"""How a fact becomes words: plurals, amounts with their unit, spans, lists that end before they bore.

A template is a format string over a finding's facts. Besides plain names it knows
``{n:GPU|GPUs}`` (number and noun), ``{n:~is|are}`` (the fitting word alone), ``{x:gpu}``, ``{x:span}`` (from
seconds), ``{x:time}`` ``{xs:list}`` and ``{x:text}``. An ``Amount`` prints with its unit, with ``{x:bare}`` without it.
Names come from the cluster and are not trusted: they are cut and cleaned of control characters.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from gangdash.engine.identifiers import Unit
from gangdash.engine.verdict import Amount

MAX_SENTENCE = 240
# Kubernetes allows names of 253 characters; a sentence has room for about a quarter of that.
MAX_NAME = 63
# What a controller says about itself is longer than a name and may not fill the sentence.
MAX_TEXT = 140
SHOWN_IN_LIST = 3


def clean(text: str) -> str:
    """Return the text on one line without control characters, so that no name can move a cursor."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def clip(text: str, limit: int = MAX_NAME) -> str:
    """Shorten a long name in the middle: its beginning names it, its end tells it from its siblings."""
    text = clean(text)
    if len(text) <= limit:
        return text
    tail = limit // 3
    return f"{text[: limit - tail - 1]}…{text[-tail:]}"


def number(value: float) -> str:
    """Print a count or an amount with at most three decimals and no trailing zero."""
    rounded = round(float(value), 3)
    return str(int(rounded)) if rounded.is_integer() else f"{rounded:.3f}".rstrip("0")


def duration(seconds: float) -> str:
    """Say a span as a person would: ``45 s``, ``12 min``, ``3 h 5 min``, ``2 d 4 h``."""
    whole = max(0, round(seconds))
    if whole < 120:
        return f"{whole} s"
    minutes = round(whole / 60)
    if minutes < 120:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


def clock(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def memory(value: float) -> str:
    """Print bytes in the largest binary unit that keeps the number readable."""
    for exponent, unit in ((5, "PiB"), (4, "TiB"), (3, "GiB"), (2, "MiB"), (1, "KiB")):
        if abs(value) >= 1024**exponent:
            return f"{number(value / 1024**exponent)} {unit}"
    return f"{number(value)} B"


def counted(value: float, singular: str, plural: str) -> str:
    return f"{number(value)} {singular if value == 1 else plural}"


def listed(names: Sequence[str], shown: int = SHOWN_IN_LIST) -> str:
    """Join names as prose; beyond ``shown`` only their number is said."""
    parts = [clip(name, 48) for name in names[:shown]]
    rest = len(names) - len(parts)
    if rest > 0:
        return f"{', '.join(parts)} and {rest} more"
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}" if parts else "none"


_FORMATS: Mapping[str, Callable[[Any], str]] = {
    "bare": number,
    "gpu": lambda value: counted(value, "GPU", "GPUs"),
    "span": duration,
    "time": clock,
    "list": listed,
    "text": lambda value: clip(str(value), MAX_TEXT),
}


_UNITS: Mapping[Unit, Callable[[Any], str]] = {
    Unit.GPU: _FORMATS["gpu"],
    Unit.GPU_MEMORY: lambda value: f"{number(value)} MiB",
    Unit.MILLICORES: lambda value: counted(value / 1000, "CPU", "CPUs"),
    Unit.BYTES: memory,
    Unit.PODS: lambda value: counted(value, "pod", "pods"),
    Unit.NODES: lambda value: counted(value, "node", "nodes"),
    Unit.SECONDS: duration,
}


def amount(value: float | str, unit: Unit) -> str:
    """Print a constraint's amount in its unit; names stay as they are."""
    if isinstance(value, str):
        return clip(value)
    return _UNITS.get(unit, number)(value)


def _amount_words(item: Amount, *, bare: bool) -> str:
    if item.unit is Unit.BYTES:
        return memory(item.value) if bare else f"{memory(item.value)} memory"
    if bare:
        return number(item.value / 1000 if item.unit is Unit.MILLICORES else item.value)
    words = amount(item.value, item.unit)
    return f"{words} {clip(item.name)}" if item.name else words


class Wording(string.Formatter):
    """Formats the templates of the registry."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if "|" in format_spec:
            singular, plural = format_spec.lstrip("~").split("|", 1)
            count = value.value if isinstance(value, Amount) else value
            if format_spec.startswith("~"):
                return singular if count == 1 else plural
            return counted(count, singular, plural)
        if isinstance(value, Amount):
            return _amount_words(value, bare=format_spec == "bare")
        if format_spec:
            return _FORMATS[format_spec](value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return clip(str(value))
        return number(value)


_WORDING = Wording()


def names_in(template: str) -> frozenset[str]:
    """Return the facts that a template needs."""
    return frozenset(name for _, name, _, _ in string.Formatter().parse(template) if name)


def compose(template: str, facts: Mapping[str, Any]) -> str:
    """Fill a template; a sentence that would be too long ends at a word boundary."""
    text = clean(_WORDING.vformat(template, (), facts))
    if len(text) <= MAX_SENTENCE:
        return text
    return text[: MAX_SENTENCE - 1].rsplit(" ", 1)[0].rstrip(",;: ") + "…"
