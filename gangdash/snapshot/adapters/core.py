"""Nodes, priority classes and events as facts (core API v1, scheduling.k8s.io/v1, events.k8s.io/v1)."""

from __future__ import annotations

from gangdash.engine.model.node import Node
from gangdash.engine.model.observed import Event
from gangdash.engine.model.queue import PriorityClass
from gangdash.engine.model.selectors import Taint
from gangdash.kube.records import core, events
from gangdash.snapshot.adapters.common import amounts, conditions, meta, time


def node(record: core.Node) -> Node:
    spec = record.spec or core.NodeSpec()
    status = record.status or core.NodeStatus()
    return Node(
        meta=meta(record.metadata),
        allocatable=amounts(status.allocatable, "status.allocatable"),
        capacity=amounts(status.capacity, "status.capacity"),
        taints=tuple(Taint(t.key, t.value or "", t.effect, time(t.time_added)) for t in spec.taints or ()),
        unschedulable=bool(spec.unschedulable),
        conditions=conditions(status.conditions),
        kubelet_version=(status.node_info.kubelet_version if status.node_info else None) or "",
        provider_id=spec.provider_id or "",
    )


def priority_class(record: core.PriorityClass) -> PriorityClass:
    return PriorityClass(meta(record.metadata), record.value, bool(record.global_default))


def event(record: events.Event) -> Event:
    """A repeated event may carry its times and count in the old fields or in ``series``: the later one is true."""
    about = record.involved_object or record.regarding or events.ObjectReference()
    series = record.series or events.EventSeries()
    first = record.first_timestamp or record.deprecated_first_timestamp or record.event_time
    last = record.last_timestamp or record.deprecated_last_timestamp
    seen = [t for t in (series.last_observed_time, last, first, record.metadata.creation_timestamp) if t is not None]
    return Event(
        meta=meta(record.metadata),
        kind=about.kind or "",
        namespace=about.namespace or "",
        name=about.name or "",
        uid=about.uid or "",
        type=record.type or "",
        reason=record.reason or "",
        message=record.message or record.note or "",
        source=_source(record),
        count=series.count or record.count or record.deprecated_count or 1,
        first=time(first or record.metadata.creation_timestamp),
        last=time(max(seen)) if seen else None,
    )


def _source(record: events.Event) -> str:
    source = record.source or record.deprecated_source
    named = source.component if source else None
    return named or record.reporting_component or record.reporting_controller or ""
