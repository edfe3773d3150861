"""Makes a report: reads the facts of one cluster and span, has the twelve sections written, adds what was before.

Reads the store and, where one is connected, Prometheus; never the cluster, never the engine. The same rows give the
same content, apart from ``made_at``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.conf import settings

from apps.clusters.models import Cluster
from apps.diagnosis.models import Snapshot
from apps.errors import ApplicationError
from apps.inventory.models import Node
from apps.reports import links
from apps.reports.content import Cell, Content, Figure, NotRead, Section
from apps.reports.facts.capacity import CapacityFacts, capacity_facts
from apps.reports.facts.hardware import HardwareFacts, hardware_facts
from apps.reports.facts.objectives import ObjectiveFacts, objective_facts
from apps.reports.facts.period import Period
from apps.reports.facts.predictions import PredictionFacts, prediction_facts
from apps.reports.facts.quality import QualityFacts, quality_facts
from apps.reports.facts.waiting import WaitingFacts, waiting_facts
from apps.reports.facts.waits import WaitFacts, wait_facts
from apps.reports.prometheus import MetricFacts, metric_facts, prometheus_for
from apps.reports.sections.data import data_section, not_read_of
from apps.reports.sections.evictions import evictions_section
from apps.reports.sections.fit import fit_section
from apps.reports.sections.flapping import flapping_section
from apps.reports.sections.hardware import hardware_section
from apps.reports.sections.headline import headline_section
from apps.reports.sections.prediction import prediction_section
from apps.reports.sections.queues import queues_section
from apps.reports.sections.scheduler import scheduler_section
from apps.reports.sections.slo import slo_section
from apps.reports.sections.waiting import waiting_section
from apps.reports.sections.why import why_section
from gangdash.engine.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that the sections are written from. ``as_of`` is None where nothing was analysed up to the end."""

    period: Period
    as_of: datetime | None
    engine: str
    gpus_per_node: float | None
    waiting: WaitingFacts
    waits: WaitFacts
    objectives: tuple[ObjectiveFacts, ...]
    capacity: CapacityFacts
    hardware: HardwareFacts
    predictions: PredictionFacts
    quality: QualityFacts
    metrics: MetricFacts


def build_content(
    cluster: Cluster,
    *,
    start: datetime,
    end: datetime,
    now: datetime,
    previous: Content | None = None,
    zone: str = "UTC",
) -> Content:
    """Return the report of one cluster over ``[start, end)``; what lies after ``now`` is not there yet."""
    if start >= min(end, now):
        raise ApplicationError("range_not_valid", "Range: it has not begun, or ends before it begins")
    period = Period(cluster.name, cluster.pk, start, min(end, now), now, zone, _known_from(cluster, now))
    facts = facts_read(cluster, period)
    views = _views(period)
    sections = tuple(
        _compared(linked(section, views[section.key]), previous) for section in sections_of(facts, previous)
    )
    return Content(
        cluster=cluster.name,
        start=start,
        end=period.end,
        made_at=now,
        zone=zone,
        sections=sections,
        not_read=tuple(_not_read(facts)),
        as_of=facts.as_of,
        engine=facts.engine,
    )


def facts_read(cluster: Cluster, period: Period) -> Facts:
    """Read everything that a report is made of."""
    analyses = Snapshot.objects.filter(cluster=cluster, outcome="done", as_of__lte=period.end)
    newest = analyses.only("as_of", "engine").order_by("-as_of").first()
    waits, waiting = wait_facts(period), waiting_facts(cluster, period.end)
    alone = Cluster.objects.filter(is_read=True).count() <= 1
    return Facts(
        period=period,
        as_of=newest.as_of if newest else None,
        engine=newest.engine if newest else "",
        gpus_per_node=_gpus_per_node(cluster),
        waiting=waiting,
        waits=waits,
        objectives=objective_facts(period),
        capacity=capacity_facts(period, waits.demand),
        hardware=hardware_facts(period),
        predictions=prediction_facts(cluster, period, waiting),
        quality=quality_facts(cluster, period),
        metrics=metric_facts(period, prometheus_for(cluster.name, alone=alone)),
    )


def _known_from(cluster: Cluster, now: datetime) -> datetime:
    """Return since when the history of a cluster is there."""
    return max(now - timedelta(days=settings.GANGDASH_KEEP_HISTORY_DAYS), cluster.added_at)


def _gpus_per_node(cluster: Cluster) -> float | None:
    """Return the GPUs that most nodes with GPUs have; the more of two equally common."""
    counts = Counter(Node.objects.filter(cluster=cluster, gpus__gt=0).values_list("gpus", flat=True))
    return max(counts, key=lambda gpus: (counts[gpus], gpus), default=None)


def sections_of(facts: Facts, previous: Content | None) -> Iterator[Section]:
    """Yield the twelve sections in their order."""
    period, waits, waiting = facts.period, facts.waits, facts.waiting
    analysed = None if facts.as_of is None and not waits.rows else waiting
    yield headline_section(period, waiting=analysed, waits=waits, objective=facts.objectives[0], previous=previous)
    yield slo_section(period, objectives=facts.objectives)
    yield waiting_section(period, waiting=waiting)
    yield why_section(period, waits=waits, gap_seconds=facts.quality.gap_seconds)
    yield fit_section(period, capacity=facts.capacity, gpus_per_node=facts.gpus_per_node)
    yield queues_section(period, capacity=facts.capacity)
    yield evictions_section(period, waits=waits)
    yield hardware_section(period, hardware=facts.hardware, capacity=facts.capacity, metrics=facts.metrics)
    yield flapping_section(period, waits=waits, waiting=waiting)
    yield scheduler_section(period, waits=waits, waiting=waiting, hardware=facts.hardware, metrics=facts.metrics)
    yield prediction_section(period, predictions=facts.predictions)
    yield data_section(period, quality=facts.quality, waiting=waiting)


def _views(period: Period) -> dict[str, str]:
    """Return by section the view that its numbers are checked in, pinned to the end of the span where it can be."""
    at = links.triage_at(period.cluster, period.end)
    views = dict.fromkeys(("headline", "waiting", "why", "fit", "flapping", "prediction"), at)
    return views | {
        "slo": links.listed("gangs", period.cluster),
        "queues": links.listed("queues", period.cluster),
        "evictions": links.triage_at(period.cluster, period.end, verdict=Verdict.EVICTED),
        "hardware": links.listed("nodes", period.cluster),
        "scheduler": links.health(period.cluster),
        "data": links.health(period.cluster),
    }


def linked(section: Section, view: str) -> Section:
    """Give each figure, and each row of a table, that leads nowhere yet the view of its section."""
    tables = (replace(table, rows=tuple(_row_linked(row, view) for row in table.rows)) for table in section.tables)
    figures = (figure if figure.link else replace(figure, link=view) for figure in section.figures)
    return replace(section, figures=tuple(figures), tables=tuple(tables))


def _row_linked(row: tuple[Cell, ...], view: str) -> tuple[Cell, ...]:
    return row if any(cell.link for cell in row) else (replace(row[0], link=view), *row[1:])


def _compared(section: Section, previous: Content | None) -> Section:
    """Put the value of the report before beside each figure."""
    if previous is None:
        return section
    return replace(section, figures=tuple(_with_before(section.key, figure, previous) for figure in section.figures))


def _with_before(section: str, figure: Figure, previous: Content) -> Figure:
    was = previous.figure(section, figure.key)
    return figure if was is None else replace(figure, before=was.value)


def _not_read(facts: Facts) -> Iterator[NotRead]:
    yield from not_read_of(facts.quality)
    for what, reading in (
        ("Use of GPUs", facts.metrics.mean_use),
        ("Scheduler cycle time", facts.metrics.cycle_median),
    ):
        if not reading.is_read:
            yield NotRead(what, reading.reason, reading.remedy)
