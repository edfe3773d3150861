"""Changes to a snapshot: what would be different if somebody acted.

A ``Change`` names a kind of the contract, the object it touches and its values; ``apply`` returns a new
snapshot and never touches the old one. Only changes that a replay can see are here: a restart, an upgrade
or a re-created workload changes nothing that the scheduler's rules read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from gangdash.engine.changes import gangs, nodes, objects, queues, submit
from gangdash.engine.changes.change import Change, ChangeError
from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.verdict import FixKind

__all__ = [
    "Change",
    "ChangeError",
    "apply",
    "change_from_mapping",
    "change_from_text",
    "change_text",
    "changes_from_mapping",
    "is_modelled",
]


def change_from_mapping(data: Mapping[str, object]) -> Change:
    """Read a change from its JSON form, ``{"kind": ..., "object": ..., key: value}``."""
    kind = _kind(str(data.get("kind", "")))
    values = {str(k): _text(v) for k, v in data.items() if k not in ("kind", "object")}
    return Change(kind, str(data.get("object", "")), values)


def changes_from_mapping(data: Mapping[str, object]) -> list[Change]:
    """Read a fix's change: the change itself, and those that ``also`` names in the form of the command line."""
    also = data.get("also", ())
    rest = [str(item) for item in also] if isinstance(also, list | tuple) else [str(also)]
    own = {key: value for key, value in data.items() if key != "also"}
    return [change_from_mapping(own), *map(change_from_text, rest)]


def change_text(change: Change) -> str:
    """Write a change in the form of the command line, ``KIND:OBJECT[:KEY=VALUE,...]``."""
    values = ",".join(f"{key}={value}" for key, value in change.values.items())
    return ":".join(filter(None, (change.kind.value, change.object, values)))


def change_from_text(text: str) -> Change:
    """Read ``KIND:OBJECT[:KEY=VALUE,...]``; a colon inside OBJECT is not supported by Kubernetes names either."""
    kind, _, rest = text.partition(":")
    name, _, tail = rest.partition(":")
    values = {}
    for part in filter(None, tail.split(",")):
        key, found, value = part.partition("=")
        if not found:
            raise ChangeError(f"{text}: {part!r} is not KEY=VALUE")
        values[key.strip()] = value.strip()
    return Change(_kind(kind), name, values)


def _kind(text: str) -> FixKind:
    try:
        return FixKind(text)
    except ValueError as error:
        known = ", ".join(sorted(k.value for k in _APPLY))
        raise ChangeError(f"unknown change {text!r}; known: {known}") from error


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def is_modelled(kind: FixKind) -> bool:
    """Whether a replay can see a change of this kind."""
    return kind in _APPLY


def apply(snapshot: ClusterSnapshot, changes: Iterable[Change]) -> ClusterSnapshot:
    """Return the snapshot with all changes made, in order."""
    for change in changes:
        handler = _APPLY.get(change.kind)
        if handler is None:
            raise ChangeError(f"{change.kind.value}: the replay cannot show what this changes")
        snapshot = handler(snapshot, change)
    return snapshot


_APPLY: Mapping[FixKind, Callable[[ClusterSnapshot, Change], ClusterSnapshot]] = {
    FixKind.RAISE_LIMIT: queues.raise_limit,
    FixKind.RAISE_QUOTA: queues.raise_quota,
    FixKind.RELAX_TOPOLOGY: gangs.relax_topology,
    FixKind.FREE_NODE: nodes.free_node,
    FixKind.UNCORDON: nodes.uncordon,
    FixKind.CORDON: nodes.cordon,
    FixKind.ADD_NODES: nodes.add_nodes,
    FixKind.SUBMIT: submit.submit,
    FixKind.SHRINK_GANG: gangs.shrink_gang,
    FixKind.SHRINK_POD: gangs.shrink_pod,
    FixKind.ADD_TOLERATION: gangs.add_toleration,
    FixKind.CHANGE_SELECTOR: gangs.change_selector,
    FixKind.MAKE_PREEMPTIBLE: gangs.make_preemptible,
    FixKind.RAISE_PRIORITY: gangs.raise_priority,
    FixKind.MOVE_QUEUE: gangs.move_queue,
    FixKind.EVICT_GANG: gangs.evict_gang,
    FixKind.CREATE_OBJECT: objects.create_object,
    FixKind.FIX_REFERENCE: objects.fix_reference,
    FixKind.REMOVE_TAINT: nodes.remove_taint,
    FixKind.SET_LABEL: objects.set_label,
    FixKind.REPAIR_DEVICE: nodes.repair_device,
    FixKind.WAIT_FOR: objects.wait_for,
}
