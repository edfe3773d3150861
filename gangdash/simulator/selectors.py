"""Label and field selectors of lists and watches, over encoded objects.

Fields are those that a server can select by: name and namespace everywhere, a few more for pods and events.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from gangdash.simulator.answers import ApiError
from gangdash.simulator.store import Keep

Match = Callable[[Mapping[str, str]], bool]

_FIELDS: Mapping[str, tuple[str, ...]] = {
    "pods": ("spec.nodeName", "spec.schedulerName", "spec.restartPolicy", "spec.serviceAccountName", "status.phase"),
    "events": (
        "involvedObject.kind",
        "involvedObject.name",
        "involvedObject.namespace",
        "involvedObject.uid",
        "reason",
        "type",
        "source",
    ),
    "secrets": ("type",),
    "namespaces": ("status.phase",),
    "nodes": ("spec.unschedulable",),
    "jobs": ("status.successful",),
}
_TERM = re.compile(r"\s*(?P<key>[^\s=!,()]+)\s*(?P<op>==|=|!=)\s*(?P<value>[^\s,()]*)\s*")
_SET = re.compile(r"\s*(?P<key>[^\s=!,()]+)\s+(?P<op>in|notin)\s*\(\s*(?P<value>[^()]*)\)\s*")
_EXISTS = re.compile(r"\s*(?P<op>!?)\s*(?P<key>[^\s=!,()]+)\s*")


def selection(plural: str, labels: str, fields: str) -> Keep | None:
    """Return the test that a list applies to each object, None where it shows them all."""
    if not labels and not fields:
        return None
    by_label, by_field = _terms(labels), _terms(fields)
    known = ("metadata.name", "metadata.namespace", *_FIELDS.get(plural, ()))
    for key in _field_keys(fields):
        if key not in known:
            raise ApiError(400, f"field label not supported: {key}")

    def keep(body: bytes) -> bool:
        obj = msgspec.json.decode(body)
        values = {key: _field(obj, key) for key in known}
        own = obj["metadata"].get("labels") or {}
        return all(match(own) for match in by_label) and all(match(values) for match in by_field)

    return keep


def _terms(text: str) -> list[Match]:
    """Read `a=b,c!=d,e in (f,g),!h` from left to right."""
    terms: list[Match] = []
    rest = text
    while rest:
        found = _SET.match(rest) or _TERM.match(rest) or _EXISTS.match(rest)
        if found is None or (found.end() < len(rest) and rest[found.end()] != ","):
            raise ApiError(400, f"unable to parse requirement: {text!r}")
        terms.append(_match(found["key"], found["op"], found.groupdict().get("value") or ""))
        rest = rest[found.end() + 1 :]
    return terms


def _match(key: str, op: str, value: str) -> Match:
    wanted = {part.strip() for part in value.split(",")}
    if op in ("=", "==", "in"):
        return lambda own: key in own and own[key] in wanted
    if op in ("!=", "notin"):
        return lambda own: own.get(key) not in wanted
    return lambda own: (key in own) != (op == "!")


def _field_keys(text: str) -> list[str]:
    return [re.split(r"[=!]", part)[0].strip() for part in text.split(",") if part.strip()]


def _field(obj: Mapping[str, Any], path: str) -> str:
    """Return a field as text, empty where it is unset, as field selectors compare it."""
    value: Any = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return str(value.get("component", ""))
    return "" if value is None else str(value)
