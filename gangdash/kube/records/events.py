"""Records of events, from either of the two APIs that serve them."""

from __future__ import annotations

from gangdash.kube.records.base import Int, Part, Record, Time


class ObjectReference(Part):
    kind: str | None = None
    namespace: str | None = None
    name: str | None = None
    uid: str | None = None


class EventSource(Part):
    component: str | None = None


class EventSeries(Part):
    count: Int | None = None
    last_observed_time: Time | None = None


class Event(Record):
    """Both event APIs: core (``involvedObject``, ``message``) and events.k8s.io (``regarding``, ``note``)."""

    involved_object: ObjectReference | None = None
    regarding: ObjectReference | None = None
    type: str | None = None
    reason: str | None = None
    message: str | None = None
    note: str | None = None
    source: EventSource | None = None
    deprecated_source: EventSource | None = None
    reporting_component: str | None = None
    reporting_controller: str | None = None
    count: Int | None = None
    deprecated_count: Int | None = None
    series: EventSeries | None = None
    event_time: Time | None = None
    first_timestamp: Time | None = None
    last_timestamp: Time | None = None
    deprecated_first_timestamp: Time | None = None
    deprecated_last_timestamp: Time | None = None
