"""Section 5: how many gangs of 1, 2, 4, 8 and 16 whole nodes fit, per level, against a week ago and an empty cluster.

Where a sample counts whole free nodes the numbers are exact for gangs that take whole nodes; older samples know free
GPUs only, and then the number is the most that could fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from apps.reports import links
from apps.reports.content import Cell, Figure, Section, Table
from apps.reports.facts.capacity import Capacity, CapacityFacts, LevelFacts
from apps.reports.facts.period import Period
from apps.reports.sections.words import amount, counted, figure, numbers, said, table, words
from apps.reports.words import moment, number

SIZES = (1, 2, 4, 8, 16)
COLUMNS = (
    words("level", "Within one"),
    numbers("size", "Nodes"),
    numbers("now", "Fit now"),
    numbers("before", "A week ago"),
    numbers("empty", "If empty"),
)
NODES, NODES_FREE = 3, 4
"""Places in a sample's entry; both are missing in samples of before nodes were counted."""


@dataclass(frozen=True, slots=True)
class Fit:
    """How many gangs of one size fit within the domains of one level; None where that is not known."""

    level: str
    size: int
    now: int | None
    before: int | None
    empty: int | None


def fit_section(period: Period, *, capacity: CapacityFacts, gpus_per_node: float | None) -> Section:
    """Build the section; ``gpus_per_node`` is what most nodes with GPUs have, None without any."""
    fits = list(fits_of(capacity, gpus_per_node))
    return Section(
        "fit",
        5,
        "Which sizes fit",
        sentences=(_sentence(capacity, gpus_per_node),),
        figures=_figures(period, capacity),
        tables=tuple(_tables(period, fits)),
        notes=tuple(_notes(period, capacity)),
    )


def _figures(period: Period, capacity: CapacityFacts) -> tuple[Figure, ...]:
    total = capacity.newest.domains.get("") if capacity.newest else None
    at = links.triage_at(period.cluster, period.end)
    return (
        figure("free_gpus", "Free GPUs", total[1] if total else None, unit="GPUs", link=at),
        figure("free_nodes", "Whole free nodes", _entry(total, NODES_FREE), unit="nodes", link=at),
    )


def fits_of(capacity: CapacityFacts, gpus_per_node: float | None) -> Iterator[Fit]:
    """Yield every level from the whole cluster down, each with every size."""
    if not gpus_per_node:
        return
    levels: list[LevelFacts | None] = [None, *capacity.topology_levels]
    several = len({level.topology for level in capacity.topology_levels}) > 1
    for level in levels:
        name = level_name(level)
        for size in SIZES:
            yield Fit(
                f"{name} of {level.topology}" if level and several else name,
                size,
                _fitting(capacity.newest, level, size, gpus_per_node),
                _fitting(capacity.week_ago, level, size, gpus_per_node),
                _fitting(capacity.newest, level, size, gpus_per_node, free=False),
            )


def level_name(level: LevelFacts | None) -> str:
    if level is None:
        return "cluster"
    return level.alias or level.label.rpartition("/")[2]


def _fitting(
    capacity: Capacity | None, level: LevelFacts | None, size: int, gpus_per_node: float, *, free: bool = True
) -> int | None:
    """Return how many gangs of a size fit within the domains of a level; None where no sample says it."""
    if capacity is None:
        return None
    entries = [entry for key, entry in capacity.domains.items() if (level.has(key) if level else key == "")]
    nodes = free_nodes if free else all_nodes
    return sum(nodes(entry, gpus_per_node) // size for entry in entries) if entries else None


def free_nodes(entry: Sequence[float], gpus_per_node: float) -> int:
    """Return the whole free nodes of a domain, or the most that its free GPUs could be."""
    counted_ = _entry(entry, NODES_FREE)
    return int(counted_) if counted_ is not None else int((entry[1] + 1e-6) // gpus_per_node)


def all_nodes(entry: Sequence[float], gpus_per_node: float) -> int:
    """Return the nodes of a domain whose GPUs are not lost, or the most that they could be."""
    usable = int((entry[0] - entry[2] + 1e-6) // gpus_per_node)
    counted_ = _entry(entry, NODES)
    return min(usable, int(counted_)) if counted_ is not None else usable


def _entry(entry: Sequence[float] | None, place: int) -> float | None:
    return entry[place] if entry is not None and len(entry) > place else None


def _tables(period: Period, fits: Sequence[Fit]) -> Iterator[Table]:
    names = list(dict.fromkeys(fit.level for fit in fits))
    if not names:
        yield table("cluster", "Whole nodes", COLUMNS, (), empty="No node with GPUs was read.")
    link = links.listed("topology", period.cluster)
    for name in names:
        rows = [_row(fit, link) for fit in fits if fit.level == name]
        title = "Anywhere in the cluster" if name == "cluster" else f"Within one {name}"
        yield table(name, title, COLUMNS, rows, empty="No node with GPUs was read.")


def _row(fit: Fit, link: str) -> tuple[Cell, ...]:
    return (
        said(fit.level),
        amount(fit.size),
        amount(fit.now, link=link),
        amount(fit.before),
        amount(fit.empty),
    )


def _sentence(capacity: CapacityFacts, gpus_per_node: float | None) -> str:
    if capacity.newest is None:
        return "No capacity was sampled in this time, so what fits is not known."
    if not gpus_per_node:
        return "No node with GPUs was read."
    gpus, free, lost = capacity.newest.domains.get("", (0.0, 0.0, 0.0))[:3]
    return (
        f"{number(free)} of {counted(gpus, 'GPU')} are free and {number(lost)} lost; a node has "
        f"{counted(gpus_per_node, 'GPU')}."
    )


def _notes(period: Period, capacity: CapacityFacts) -> Iterator[str]:
    yield "Gangs of whole nodes, by capacity alone: quotas, labels, taints and other resources are not looked at."
    if any(_is_estimate(found) for found in (capacity.newest, capacity.week_ago)):
        yield "Where whole free nodes were not counted yet, the number is the most that the free GPUs could hold."
    if capacity.week_ago is None:
        yield "No sample of a week ago is kept."
    elif capacity.newest is not None:
        yield f"A week ago is {moment(capacity.week_ago.at, period.zone)}."


def _is_estimate(capacity: Capacity | None) -> bool:
    return capacity is not None and any(len(entry) <= NODES_FREE for entry in capacity.domains.values())
