"""Numbers and moments as every form of a report writes them."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from apps.reports.content import Content, Figure, Known
from gangdash.reasons.wording import duration

MINUS = "\u2212"


def number(value: float) -> str:
    """Write a number as the sections do: whole from ten on, else with at most two places; thousands separated."""
    rounded = round(value) if abs(value) >= 10 else round(value, 2)
    text = f"{rounded:,.2f}".rstrip("0").rstrip(".")
    return "0" if text in {"-0", ""} else text.replace("-", MINUS)


def signed(value: float) -> str:
    """Write a difference with its sign; none is a bare zero."""
    text = number(abs(value))
    if text == "0":
        return "0"
    return f"{MINUS if value < 0 else '+'}{text}"


def change(figure: Figure) -> str:
    """Write how a figure differs from the report before, empty where either is not known."""
    return difference(figure, figure.before)


def difference(figure: Figure, before: float | None) -> str:
    """Write how a figure differs from an earlier value: spans as spans, shares in points of a hundred."""
    if figure.known != Known.VALUE or figure.value is None or before is None:
        return ""
    by = figure.value - before
    if figure.unit == "s":
        text = duration(abs(by))
        return "0" if round(abs(by)) == 0 else f"{MINUS if by < 0 else '+'}{text}"
    return f"{signed(round(by * 100))} points" if figure.text.endswith("%") else signed(by)


def zone_of(name: str) -> ZoneInfo:
    """Return a time zone; a name that this machine does not know is read as UTC."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo("UTC")


def moment(value: datetime, zone: str) -> str:
    """Write a moment with its day and the short name of its zone."""
    local = value.astimezone(zone_of(zone))
    return f"{local.day} {local:%b %Y %H:%M} {local.tzname()}"


def day(value: datetime, zone: str) -> str:
    local = value.astimezone(zone_of(zone))
    return f"{local:%A} {local.day} {local:%B %Y}"


def span(content: Content) -> str:
    """Write which time a report covers."""
    return f"{moment(content.start, content.zone)} to {moment(content.end, content.zone)}"


def length(start: datetime, end: datetime) -> str:
    """Write how much time a range covers, as people name it."""
    hours = (end - start) / timedelta(hours=1)
    if hours >= 48 and hours % 24 == 0:
        return f"{hours / 24:.0f} days"
    return "1 hour" if hours == 1 else f"{number(hours)} hours"


def moment_of(label: str) -> datetime | None:
    """Return the moment that a chart's label is, None where it is a word."""
    try:
        found = datetime.fromisoformat(label)
    except ValueError:
        return None
    return found if found.tzinfo else None


def label(text: str, zone: str) -> str:
    """Write a chart's label: a moment as people read it, a word as it is."""
    found = moment_of(text)
    return moment(found, zone) if found else text
