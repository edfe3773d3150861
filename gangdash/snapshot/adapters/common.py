"""What every adapter needs: metadata, conditions, selectors, amounts, times.

Relies on ``gangdash.kube.quantity`` for exact numbers. A field whose text means nothing raises
``FieldError``; the builder leaves the object out and names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from gangdash.engine.model import meta as model
from gangdash.engine.model import selectors
from gangdash.engine.model.resources import is_counted_whole
from gangdash.kube import quantity
from gangdash.kube.records import base


class FieldError(ValueError):
    """A field that decodes but means nothing."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


def time(moment: datetime | None) -> float | None:
    return moment.timestamp() if moment is not None else None


def amounts(values: Mapping[str, base.Quantity] | None, field: str) -> dict[str, int]:
    """Return amounts in scheduler units: see ``engine.model.resources``."""
    return {name: amount(name, value, field) for name, value in (values or {}).items()}


def amount(name: str, value: base.Quantity, field: str) -> int:
    try:
        return quantity.value(value) if is_counted_whole(name) else quantity.milli_value(value)
    except quantity.QuantityError as err:
        raise FieldError(f"{field}.{name}", str(err)) from err


def whole(value: base.Quantity | None, field: str) -> int | None:
    """Return an amount in whole units, such as bytes."""
    if value is None:
        return None
    try:
        return quantity.value(value)
    except quantity.QuantityError as err:
        raise FieldError(field, str(err)) from err


def seconds(duration: str | None, field: str) -> float | None:
    if duration is None:
        return None
    try:
        return quantity.seconds(duration)
    except quantity.QuantityError as err:
        raise FieldError(field, str(err)) from err


def meta(metadata: base.Metadata) -> model.Meta:
    return model.Meta(
        name=metadata.name,
        namespace=metadata.namespace or "",
        uid=metadata.uid or "",
        created=time(metadata.creation_timestamp),
        deleted=time(metadata.deletion_timestamp),
        labels=metadata.labels or {},
        annotations=metadata.annotations or {},
        owners=tuple(
            model.OwnerRef(o.api_version, o.kind, o.name, o.uid, bool(o.controller))
            for o in metadata.owner_references or ()
        ),
        generation=metadata.generation,
        finalizers=metadata.finalizers or (),
    )


def conditions(records: tuple[base.Condition, ...] | None) -> tuple[model.Condition, ...]:
    return tuple(
        model.Condition(
            type=c.type,
            status=c.status,
            reason=c.reason or "",
            message=c.message or "",
            since=time(c.last_transition_time),
            observed_generation=c.observed_generation,
        )
        for c in records or ()
    )


def _requirements(records: tuple[base.Requirement, ...] | None) -> tuple[selectors.Requirement, ...]:
    return tuple(selectors.Requirement(r.key, r.operator, r.values or ()) for r in records or ())


def label_selector(record: base.LabelSelector | None) -> selectors.LabelSelector | None:
    if record is None:
        return None
    return selectors.LabelSelector(record.match_labels or {}, _requirements(record.match_expressions))


def node_term(record: base.NodeSelectorTerm) -> selectors.NodeSelectorTerm:
    return selectors.NodeSelectorTerm(_requirements(record.match_expressions), _requirements(record.match_fields))


def node_terms(record: base.NodeSelector | None) -> tuple[selectors.NodeSelectorTerm, ...] | None:
    """Return ``None`` for no selector at all; a selector without terms matches no node."""
    if record is None:
        return None
    return tuple(node_term(t) for t in record.node_selector_terms or ())
