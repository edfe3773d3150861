"""Two reports side by side: each figure that either has, and how much it changed."""

from __future__ import annotations

from dataclasses import dataclass

from apps.reports.content import Content, Figure, Known
from apps.reports.words import difference


@dataclass(frozen=True, slots=True)
class Compared:
    """One figure in both reports; ``change`` is empty where either does not have its number."""

    section: str
    label: str
    now: Figure | None
    then: Figure | None
    change: str


def compare(content: Content, other: Content) -> tuple[Compared, ...]:
    """Return the figures of both, in the order of the first; what only the other has comes last."""
    now, then = _figures(content), _figures(other)
    either = {**now, **{key: titled for key, titled in then.items() if key not in now}}
    return tuple(_compared(now.get(key), then.get(key), titled) for key, titled in either.items())


Titled = tuple[str, Figure]


def _figures(content: Content) -> dict[tuple[str, str], Titled]:
    return {
        (section.key, figure.key): (section.title, figure) for section in content.sections for figure in section.figures
    }


def _compared(now: Titled | None, then: Titled | None, titled: Titled) -> Compared:
    title, figure = titled
    left, right = now[1] if now else None, then[1] if then else None
    return Compared(title, figure.label, left, right, _change(left, right))


def _change(now: Figure | None, then: Figure | None) -> str:
    if now is None or then is None or then.known != Known.VALUE:
        return ""
    return difference(now, then.value)
