"""Section 8: nodes lost and returned, domains that lost GPUs, GPUs over time, and GPUs that are held but idle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from apps.reports import links
from apps.reports.content import Cell, Chart, ChartKind, Figure, Section, Series
from apps.reports.facts.capacity import CapacityFacts, LevelFacts
from apps.reports.facts.hardware import HardwareFacts, Outage
from apps.reports.facts.period import Period
from apps.reports.prometheus import MetricFacts, Reading
from apps.reports.sections.words import (
    ROWS,
    amount,
    counted,
    figure,
    figure_not_read,
    gpu_hours,
    lasting,
    numbers,
    percent,
    said,
    span,
    table,
    words,
)
from apps.reports.words import moment, number

NODE_COLUMNS = (
    words("node", "Node"),
    words("state", "State now"),
    words("reason", "Reason"),
    words("since", "Since"),
    numbers("times", "Times lost"),
    numbers("away", "Away for"),
)
DOMAIN_COLUMNS = (
    words("domain", "Domain"),
    words("level", "Level"),
    numbers("lost", "Lost GPUs"),
    numbers("gpus", "GPUs"),
)


def hardware_section(
    period: Period, *, hardware: HardwareFacts, capacity: CapacityFacts, metrics: MetricFacts
) -> Section:
    """Build the section."""
    domains = sorted(_domains(capacity), key=lambda row: (-(row[2].value or 0.0), row[0].text))
    nodes = [_node_row(period, outage) for outage in hardware.nodes[:ROWS]]
    return Section(
        "hardware",
        8,
        "Hardware",
        sentences=(_sentence(hardware),),
        figures=tuple(_figures(period, hardware, capacity, metrics)),
        tables=(
            table("nodes", "Nodes that were away", NODE_COLUMNS, nodes, empty="Every node was ready all the time.",
                  total=len(hardware.nodes)),
            table("domains", "Domains without all their GPUs at the end", DOMAIN_COLUMNS, domains[:ROWS],
                  empty="No domain has lost a GPU." if capacity.newest else "No capacity was sampled.",
                  total=len(domains)),
        ),
        charts=tuple(_charts(period, capacity, metrics)),
        notes=tuple(_notes(metrics)),
    )  # fmt: skip


def _sentence(hardware: HardwareFacts) -> str:
    if not hardware.states:
        return "No state of a node is known."
    ready = hardware.states.get("ready", 0)
    lost, returned = counted(hardware.lost, "loss", "losses"), counted(hardware.returned, "return")
    return f"{number(ready)} of {counted(hardware.total, 'node')} were ready at the end; {lost}, {returned}."


def _figures(
    period: Period, hardware: HardwareFacts, capacity: CapacityFacts, metrics: MetricFacts
) -> Iterator[Figure]:
    link = links.listed("nodes", period.cluster)
    known = bool(hardware.states)
    yield figure("ready", "Nodes ready", hardware.states.get("ready", 0) if known else None, link=link)
    yield figure("lost", "Nodes lost", hardware.lost if known else None, link=link)
    yield figure("returned", "Nodes returned", hardware.returned if known else None, link=link)
    total = capacity.total_gpu_seconds
    used = capacity.used_gpu_seconds / total if total else None
    yield figure("held", "GPUs held, on average", used, text=percent(used) if used is not None else "")
    yield gpu_hours("lost_gpu_hours", "GPU-hours lost to node state", capacity.lost_gpu_seconds)
    yield metric("idle", "GPUs held but idle over 1 h", metrics.idle, "GPUs")
    yield metric("use", "Mean use of held GPUs", metrics.mean_use, "%")


def metric(key: str, label: str, reading: Reading, unit: str) -> Figure:
    """Build a figure that only Prometheus knows."""
    if reading.value is None:
        return figure_not_read(key, label, unit)
    return figure(key, label, reading.value, unit=unit)


def _node_row(period: Period, outage: Outage) -> tuple[Cell, ...]:
    return (
        said(outage.subject, links.listed("nodes", period.cluster)),
        said(outage.state.replace("_", " ")),
        said(outage.reason),
        said(moment(outage.last_at, period.zone)),
        amount(outage.times),
        lasting(outage.away_seconds),
    )


def _domains(capacity: CapacityFacts) -> Iterator[tuple[Cell, ...]]:
    for key, entry in (capacity.newest.domains if capacity.newest else {}).items():
        if key and entry[2] > 0:
            path = key.partition("|")[2]
            yield said(path), said(_level(capacity.topology_levels, key)), amount(entry[2]), amount(entry[0])


def _level(levels: Sequence[LevelFacts], key: str) -> str:
    level = next((level for level in levels if level.has(key)), None)
    return (level.alias or level.label.rpartition("/")[2]) if level else ""


def _charts(period: Period, capacity: CapacityFacts, metrics: MetricFacts) -> Iterator[Chart]:
    labels = tuple(at.isoformat() for at in period.step_starts)
    step = span(period.step.total_seconds())
    levels = capacity.levels
    if any(level is not None for level in levels):
        names = (("used", "Held"), ("free", "Free"), ("lost", "Lost"))
        series = tuple(
            Series(key, label, tuple(None if level is None else level[at] for level in levels))
            for at, (key, label) in enumerate(names)
        )
        last = next(level for level in reversed(levels) if level is not None)
        told = ", ".join(f"{number(last[at])} {label.lower()}" for at, (_, label) in enumerate(names))
        yield Chart("gpus", "GPUs", ChartKind.STACKED, labels, series, "GPUs", f"Mean of each {step}; last: {told}.")
    if any(value is not None for value in metrics.use):
        found = [value for value in metrics.use if value is not None]
        told = f"Mean use of all GPUs in each {step}, between {number(min(found))} and {number(max(found))} %."
        yield Chart("use", "Use of GPUs", ChartKind.LINES, labels, (Series("use", "Mean use", metrics.use),), "%", told)


def _notes(metrics: MetricFacts) -> Iterator[str]:
    for what, reading in (("Use of GPUs", metrics.mean_use), ("GPUs held but idle", metrics.idle)):
        if not reading.is_read:
            yield f"{what}: not read ({reading.reason}). {reading.remedy}."
    if metrics.devices.value is not None and metrics.held.value is not None:
        yield (
            f"{counted(metrics.devices.value, 'GPU')} measured, {number(metrics.held.value)} of them held by a pod. "
            "Idle is no use at all in the last hour."
        )
