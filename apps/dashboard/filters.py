"""The address is the view: filters, grouping, sorting and the chart's range, read from the query and written back.

Only what differs from the default is written, values are never guessed at: an unknown verdict or sort is ignored
and drops out of the next address.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode

from django.http import QueryDict

from apps.dashboard import marks
from apps.workloads.choices import GangState
from apps.workloads.selectors import GangFilter

FIELDS = ("cluster", "namespace", "queue", "verdict", "code", "who")
TITLES: Mapping[str, str] = {
    "cluster": "Cluster",
    "namespace": "Namespace",
    "queue": "Queue",
    "verdict": "Verdict",
    "code": "Code",
    "who": "Who acts",
    "state": "State",
}
SORTS: Mapping[str, str] = {
    "gpu_hours": "GPU-hours waited",
    "waits": "waiting longest",
    "gpus": "most GPUs",
    "gang": "name",
    "queue": "queue",
}
DEFAULT_SORT = "gpu_hours"
RANGES: Mapping[int, str] = {6: "6 h", 24: "24 h", 168: "7 d"}
DEFAULT_HOURS = 6
TEXT_MAX = 200
VALUES_MAX = 50


@dataclass(frozen=True, slots=True)
class Chip:
    """One active filter value with the address that drops it."""

    title: str
    value: str
    drop_url: str


@dataclass(frozen=True, slots=True)
class Option:
    word: str
    url: str


@dataclass(frozen=True, slots=True)
class Menu:
    """One filter that can be added, with its values."""

    title: str
    options: tuple[Option, ...]


@dataclass(frozen=True, slots=True)
class ListView:
    """One view of a gang list. ``is_grouped`` puts rows of one cause together."""

    filter: GangFilter = field(default_factory=GangFilter)
    is_grouped: bool = True
    sort: str = DEFAULT_SORT
    hours: int = DEFAULT_HOURS

    @property
    def cluster(self) -> str:
        """Return the cluster where the view is of exactly one, else empty."""
        return self.filter.cluster[0] if len(self.filter.cluster) == 1 else ""

    @property
    def is_filtered(self) -> bool:
        """Tell whether a filter hides rows; a picked cluster is a place, not a filter."""
        return bool(self.filter.text) or any(getattr(self.filter, name) for name in (*FIELDS[1:], "state"))

    def pairs(self) -> list[tuple[str, str]]:
        """Return what differs from the default, in a fixed order."""
        pairs = [(name, value) for name in (*FIELDS, "state") for value in getattr(self.filter, name)]
        if self.filter.text:
            pairs.append(("q", self.filter.text))
        if not self.is_grouped:
            pairs.append(("group", "none"))
        if self.sort != DEFAULT_SORT:
            pairs.append(("sort", self.sort))
        if self.hours != DEFAULT_HOURS:
            pairs.append(("hours", str(self.hours)))
        return pairs

    def query(self) -> str:
        """Return the view as the part of an address behind the question mark, with it; empty for the default."""
        pairs = self.pairs()
        return f"?{urlencode(pairs)}" if pairs else ""

    def with_value(self, name: str, value: str) -> ListView:
        values: tuple[str, ...] = getattr(self.filter, name)
        return self if value in values else self._with(name, (*values, value))

    def without(self, name: str, value: str = "") -> ListView:
        """Drop one value, or the whole filter where none is named."""
        values: tuple[str, ...] = getattr(self.filter, name)
        return self._with(name, tuple(kept for kept in values if value and kept != value))

    def cleared(self) -> ListView:
        """Drop every filter but the cluster."""
        return replace(self, filter=GangFilter(cluster=self.filter.cluster))

    def unfiltered(self) -> ListView:
        return replace(self, filter=GangFilter())

    def _with(self, name: str, values: tuple[str, ...]) -> ListView:
        kept: dict[str, Any] = {name: values}
        return replace(self, filter=replace(self.filter, **kept))


def parse(query: QueryDict) -> ListView:
    """Read a view from an address."""
    allowed = {"verdict": set(marks.VERDICTS), "who": set(marks.WHO), "state": set(GangState.values)}
    values: dict[str, tuple[str, ...]] = {}
    for name in (*FIELDS, "state"):
        given = dict.fromkeys(value for value in query.getlist(name)[:VALUES_MAX] if value and "\x00" not in value)
        values[name] = tuple(value for value in given if name not in allowed or value in allowed[name])
    text = query.get("q", "").replace("\x00", "").strip()[:TEXT_MAX]
    sort = query.get("sort", DEFAULT_SORT)
    hours = query.get("hours", "")
    return ListView(
        filter=GangFilter(text=text, **values),
        is_grouped=query.get("group") != "none",
        sort=sort if sort in SORTS else DEFAULT_SORT,
        hours=int(hours) if hours.isascii() and hours.isdigit() and int(hours) in RANGES else DEFAULT_HOURS,
    )


def value_word(name: str, value: str) -> str:
    """Write a filter's value as the marks say it."""
    if name == "verdict":
        return marks.verdict_mark(value).word
    if name == "who":
        return marks.who_mark(value).word
    if name == "state":
        return str(GangState(value).label)
    return value


def chips(view: ListView) -> list[Chip]:
    """Return the active filters."""
    found = [
        Chip(TITLES[name], value_word(name, value), view.without(name, value).query() or "?")
        for name in (*FIELDS, "state")
        for value in getattr(view.filter, name)
    ]
    if view.filter.text:
        dropped = replace(view, filter=replace(view.filter, text=""))
        found.append(Chip("Text", view.filter.text, dropped.query() or "?"))
    return found


def menus(view: ListView, choices: Mapping[str, Sequence[str]]) -> list[Menu]:
    """Return the filters that can still be added, with the values that occur now."""
    found = []
    for name in FIELDS:
        taken: tuple[str, ...] = getattr(view.filter, name)
        options = tuple(
            Option(value_word(name, value), view.with_value(name, value).query())
            for value in choices.get(name, ())
            if value not in taken
        )
        if options and (len(options) + len(taken) > 1 or name != "cluster"):
            found.append(Menu(TITLES[name], options))
    return found
