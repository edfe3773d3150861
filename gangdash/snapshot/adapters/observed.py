"""Kinds that the replay does not use, as facts under their dotted API paths.

Paths end where the API has a list or a free map: ``spec.replicas`` is a number, ``spec.template.cliques``
a list of objects, ``spec.hard`` a map. Conditions have a place of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from gangdash.engine.model.observed import ObservedObject
from gangdash.kube.kinds import Tree, by_name, path_tree
from gangdash.kube.records import base
from gangdash.snapshot.adapters.common import FieldError, conditions, meta


def observed(record: base.Observed) -> ObservedObject:
    tree = path_tree(by_name()[record.kind].paths)
    return ObservedObject(
        api_version=record.api_version,
        kind=record.kind,
        meta=meta(record.metadata),
        facts={path: v for path, v in _flat("", record.fields, tree) if path != "status.conditions"},
        conditions=conditions(_conditions(record.fields)),
    )


def _flat(prefix: str, value: dict[str, Any], tree: Tree) -> Iterator[tuple[str, Any]]:
    for key, item in value.items():
        below = tree[key]
        path = f"{prefix}.{key}" if prefix else key
        if isinstance(item, dict) and below and "*" not in below:
            yield from _flat(path, item, below)
        else:
            yield path, item


def _conditions(fields: dict[str, Any]) -> tuple[base.Condition, ...]:
    try:
        return msgspec.convert(fields.get("status", {}).get("conditions") or (), tuple[base.Condition, ...])
    except msgspec.ValidationError as err:
        raise FieldError("status.conditions", str(err)) from err
