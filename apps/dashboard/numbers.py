"""How the pages write amounts, spans and moments: one form per kind, as the eye meets them in every table.

Takes plain values and returns text without markup. What is unset or unreadable is not a number and is drawn by the
template, never here.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from gangdash.engine.identifiers import Unit

THIN = "\u00a0"
MINUS = "\u2212"
UNLIMITED = -1
GIB = 1024**3

UNIT_WORDS: dict[str, str] = {
    Unit.GPU: "GPU",
    Unit.GPU_MEMORY: "MiB",
    Unit.MILLICORES: "cores",
    Unit.BYTES: "GiB",
    Unit.COUNT: "",
    Unit.PODS: "pods",
    Unit.NODES: "nodes",
    Unit.SECONDS: "",
    Unit.PRIORITY: "",
    Unit.NAME: "",
}


def number(value: float) -> str:
    """Write a count with thousands separated; fractions get at most two places."""
    whole = round(value)
    if abs(value - whole) < 0.005:
        return f"{whole:,}".replace("-", MINUS)
    return f"{value:,.2f}".replace("-", MINUS)


def scaled(value: float, unit: str) -> float:
    """Turn an amount of the store into the unit that is written beside it."""
    if unit == Unit.MILLICORES:
        return value / 1000
    return value / GIB if unit == Unit.BYTES else value


def amount(value: float | str, unit: str) -> str:
    """Write an amount without its unit word; a span brings its own, a name stays a name."""
    if isinstance(value, str):
        return value
    if unit == Unit.SECONDS:
        return span(value)
    return number(scaled(value, unit))


def signed(value: float, unit: str = "") -> str:
    """Write a margin: true minus, plus, and a bare zero."""
    if unit == Unit.SECONDS:
        text = span(abs(value))
    else:
        value = scaled(value, unit)
        text = number(abs(value))
    if text == "0":
        return "0"
    return f"{MINUS if value < 0 else '+'}{text}"


def counted(value: float, singular: str, plural: str = "") -> str:
    """Write a number with its noun: ``1 gang``, ``1,204 gangs``."""
    return f"{number(value)} {singular if value == 1 else plural or singular + 's'}"


def span(seconds: float) -> str:
    """Write a duration in at most two units: ``12 s``, ``47 min``, ``3 h 12 min``, ``2 d 19 h``."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole}{THIN}s"
    minutes, rest = divmod(whole, 60)
    if minutes < 10 and rest:
        return f"{minutes}{THIN}min{THIN}{rest}{THIN}s"
    if minutes < 60:
        return f"{minutes}{THIN}min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours}{THIN}h{THIN}{minutes}{THIN}min" if minutes else f"{hours}{THIN}h"
    days, hours = divmod(hours, 24)
    return f"{days}{THIN}d{THIN}{hours}{THIN}h" if hours else f"{days}{THIN}d"


def between(start: datetime, end: datetime) -> str:
    return span((end - start) / timedelta(seconds=1))


def lasted(start: datetime, end: datetime) -> str:
    """Write how long something took; what is over in a blink took less than a second, not none."""
    return f"under 1{THIN}s" if end - start < timedelta(seconds=1) else between(start, end)


def clock(moment: datetime, now: datetime) -> str:
    """Write a moment of today as ``08:56:21``, an older one as ``29 Nov 16:12``, another year's with the year."""
    moment = moment.astimezone(UTC)
    now = now.astimezone(UTC)
    if moment.date() == now.date():
        return moment.strftime("%H:%M:%S")
    return moment.strftime("%d %b %H:%M" if moment.year == now.year else "%d %b %Y %H:%M").lstrip("0")


def full_clock(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def iso(moment: datetime) -> str:
    """Write a moment as URLs, exports and ``datetime`` attributes carry it."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def parse_time(text: str | None) -> datetime | None:
    """Read a time of an explanation document; None where there is none or it is no time with a zone."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else None
