"""Changes to queues: limits and quotas."""

from __future__ import annotations

from dataclasses import replace

from gangdash.engine.changes.change import (
    Change,
    ChangeError,
    edit_queue,
    number,
)
from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.model.queue import Queue, QueueResource


def _queue_numbers(change: Change, name: str) -> dict[str, float]:
    amounts = {key: number(change, key) for key in ("cpu", "memory", "gpu") if key in change.values}
    if not amounts:
        raise ChangeError(f"{change.kind.value} {change.object}: say gpu=, cpu= (millicores) or memory= (MB)")
    unknown = set(change.values) - {"cpu", "memory", "gpu"}
    if unknown:
        raise ChangeError(f"{change.kind.value} {change.object}: no key {min(unknown)!r} for a {name}")
    return amounts


def _set_queue_field(snapshot: ClusterSnapshot, change: Change, name: str) -> ClusterSnapshot:
    amounts = _queue_numbers(change, name)

    def edit(queue: Queue) -> Queue:
        def one(key: str, current: QueueResource | None) -> QueueResource | None:
            if key not in amounts:
                return current
            base = current or QueueResource()
            return replace(base, quota=amounts[key]) if name == "quota" else replace(base, limit=amounts[key])

        return replace(
            queue,
            has_resources=True,
            cpu=one("cpu", queue.cpu),
            memory=one("memory", queue.memory),
            gpu=one("gpu", queue.gpu),
        )

    return edit_queue(snapshot, change, edit)


def raise_limit(snapshot: ClusterSnapshot, change: Change) -> ClusterSnapshot:
    return _set_queue_field(snapshot, change, "limit")


def raise_quota(snapshot: ClusterSnapshot, change: Change) -> ClusterSnapshot:
    return _set_queue_field(snapshot, change, "quota")
