"""The filters of the list of reports, as chips and menus like those of the other lists; the address is the view."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from urllib.parse import urlencode

from apps.dashboard.filters import Chip, Menu, Option
from apps.reports.choices import ReportState

ON_DEMAND = "-"
TITLES = {"cluster": "Cluster", "schedule": "Schedule", "state": "State"}


@dataclass(frozen=True, slots=True)
class ReportView:
    """What is picked; empty means all. The schedule is a name, or the mark for reports that somebody asked for."""

    cluster: str = ""
    schedule: str = ""
    state: str = ""

    @property
    def is_filtered(self) -> bool:
        return any(asdict(self).values())

    def query(self) -> str:
        """Return the query of this view; only what is picked is in it."""
        return f"?{urlencode({name: value for name, value in asdict(self).items() if value})}"


def parse(query: Mapping[str, str]) -> ReportView:
    """Read the view from an address; what no row can have is not looked for."""
    return ReportView(**{name: query.get(name, "").replace("\x00", "")[:253] for name in TITLES})


def chips(view: ReportView) -> list[Chip]:
    """Return the active filters."""
    return [
        Chip(TITLES[name], word(name, value), replace(view, **{name: ""}).query())
        for name, value in asdict(view).items()
        if value
    ]


def menus(view: ReportView, *, clusters: Sequence[str], schedules: Sequence[str]) -> list[Menu]:
    """Return the filters that can still be added, with their values."""
    values = {"cluster": clusters, "schedule": (*schedules, ON_DEMAND), "state": ReportState.values}
    return [
        Menu(TITLES[name], tuple(_options(view, name, choices)))
        for name, choices in values.items()
        if len(choices) > 1 and not getattr(view, name)
    ]


def word(name: str, value: str) -> str:
    """Write a value as people read it."""
    if name == "schedule" and value == ON_DEMAND:
        return "On demand"
    return ReportState(value).label if name == "state" and value in ReportState.values else value


def _options(view: ReportView, name: str, choices: Sequence[str]) -> Iterator[Option]:
    for value in choices:
        yield Option(word(name, value), replace(view, **{name: value}).query())
