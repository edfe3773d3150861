"""A queue that its shard drops as an orphan: hang it below a queue that the shard sees, or below a new one."""

from __future__ import annotations

from collections.abc import Iterator

from gangdash.engine.changes import Change
from gangdash.engine.explain.queues import chain
from gangdash.engine.fixes.candidate import Candidate, Case
from gangdash.engine.model.queue import Queue
from gangdash.engine.session.build import in_pool
from gangdash.engine.verdict import FactValue, FixKind, Who

_MOST = 2


def adopted(case: Case) -> Iterator[Candidate]:
    """Yield other parents for the queue, those that have queues below them first; then a new parent."""
    context, params = case.gang.context, case.gang.params
    orphan = _orphan(case)
    if orphan is None:
        return
    seen = [queue for queue in context.snapshot.queues if in_pool(queue.meta, params) and not queue.parent]
    parents = [queue for queue in seen if queue.name != orphan.name and context.children.get(queue.name)]
    for parent in sorted(parents, key=lambda queue: queue.name)[:_MOST]:
        yield _below(orphan, parent.name)
    pool = params.node_pool_label_value
    name = f"{orphan.parent or orphan.name}-{pool or 'parent'}"
    labels = {f"label.{params.node_pool_label_key}": pool} if params.node_pool_label_key and pool else {}
    created = Change(FixKind.CREATE_OBJECT, f"Queue/{name}", labels)
    facts: dict[str, FactValue] = {"kind": "queue", "name": name}
    below = (_below(orphan, name),)
    yield Candidate(FixKind.CREATE_OBJECT, (created,), facts, who=Who.QUEUE_ADMIN, beside=below)


def _orphan(case: Case) -> Queue | None:
    """Return the gang's queue, or the one above it, whose parent the shard does not see."""
    context, params = case.gang.context, case.gang.params
    current, walked = context.queues.get(case.gang.podgroup.queue), set[str]()
    while current is not None and current.name not in walked:
        walked.add(current.name)
        parent = context.queues.get(current.parent)
        if parent is None or not in_pool(parent.meta, params):
            return current if not chain(case.gang) else None
        current = parent
    return None


def _below(orphan: Queue, parent: str) -> Candidate:
    change = Change(FixKind.FIX_REFERENCE, f"Queue/{orphan.name}", {"parent": parent})
    facts: dict[str, FactValue] = {
        "field": "spec.parentQueue",
        "object": f"Queue {orphan.name}",
        "found": orphan.parent or "nothing",
        "wanted": parent,
    }
    return Candidate(FixKind.FIX_REFERENCE, (change,), facts, who=Who.QUEUE_ADMIN)
