"""Field ownership records as servers keep them: a quarter to a half of each object's bytes, of no use to a reader.

Only their shape and size matter here: readers must skip them cheaply. They are made from the object itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Set by the server, never owned by a client.
_SERVER_FIELDS = frozenset({"name", "namespace", "uid", "resourceVersion", "creationTimestamp", "generation"})


def managed_fields(obj: Mapping[str, Any], api_version: str, now: str) -> list[dict[str, Any]]:
    """Return one record for who made the object and, where it has a status, one for who reports it."""
    metadata = {key: value for key, value in obj.get("metadata", {}).items() if key not in _SERVER_FIELDS}
    rest = {key: value for key, value in obj.items() if key not in {"apiVersion", "kind", "metadata", "status"}}
    made = str(obj.get("metadata", {}).get("creationTimestamp", now))
    records = [_record("kubectl-client-side-apply", api_version, made, {"metadata": metadata} | rest)]
    if obj.get("status"):
        status = _record("controller", api_version, now, {"status": obj["status"]})
        records.append(status | {"subresource": "status"})
    return records


def _record(manager: str, api_version: str, time: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "manager": manager,
        "operation": "Update",
        "apiVersion": api_version,
        "time": time,
        "fieldsType": "FieldsV1",
        "fieldsV1": _owned(fields),
    }


def _owned(value: object) -> dict[str, Any]:
    """Return the set of field names below a value, as FieldsV1 writes it."""
    if isinstance(value, Mapping):
        return {f"f:{key}": _owned(part) for key, part in value.items()}
    if isinstance(value, list):
        return {_item_key(item): _owned(item) for item in value if isinstance(item, Mapping) and _item_key(item)}
    return {}


def _item_key(item: Mapping[str, Any]) -> str:
    for key in ("type", "name"):
        if isinstance(item.get(key), str):
            return f'k:{{"{key}":"{item[key]}"}}'
    return ""
