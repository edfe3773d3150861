"""The queue tree of a shard as the scheduler keeps it: orphans gone, numbers in its own units.

Mirrors pkg/scheduler/cache/cluster_info/queue.go and the queue part of plugins/proportion/proportion.go
(KAI d5bc503a). An absent number is 0, not unlimited.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gangdash.engine.model.meta import Meta
from gangdash.engine.model.queue import Queue, QueueResource
from gangdash.engine.statement import UNLIMITED, QueueState

SYNTHETIC_PARENT = "default"
"""The one parent of every queue where fairness is kept between leaf queues alone."""
_MEGABYTE = 1_000_000
_UNLIMITED = QueueResource(quota=UNLIMITED, limit=UNLIMITED, over_quota_weight=1)


def queue_tree(queues: Iterable[Queue], *, full_hierarchy: bool, as_of: float) -> dict[str, QueueState]:
    """Return the queues of a session by name, in order of their names."""
    listed = sorted(queues, key=lambda queue: queue.name)
    if not full_hierarchy:
        top = Queue(Meta(SYNTHETIC_PARENT, created=as_of), cpu=_UNLIMITED, memory=_UNLIMITED, gpu=_UNLIMITED)
        listed = [top, *(replace(queue, parent=SYNTHETIC_PARENT) for queue in listed if queue.parent)]
    states = {queue.name: _state(queue) for queue in listed}
    for state in states.values():
        if state.parent in states:
            states[state.parent].children.append(state.name)
    for name in [state.name for state in states.values() if state.parent and state.parent not in states]:
        _drop(states, name)
    for state in states.values():
        state.ancestors = _ancestors(states, state)
    return states


def _drop(states: dict[str, QueueState], name: str) -> None:
    state = states.pop(name, None)
    if state is not None:
        for child in state.children:
            _drop(states, child)


def _ancestors(states: dict[str, QueueState], state: QueueState) -> tuple[QueueState, ...]:
    """Return the queue and all above it; a cycle of parents, which the scheduler would follow for ever, ends here."""
    chain = [state]
    while (parent := states.get(chain[-1].parent)) is not None and parent not in chain:
        chain.append(parent)
    return tuple(chain)


def _state(queue: Queue) -> QueueState:
    state = QueueState(queue)
    cpu, memory, gpu = (part or QueueResource() for part in (queue.cpu, queue.memory, queue.gpu))
    state.deserved = (cpu.quota or 0, _bytes(memory.quota), gpu.quota or 0)
    state.limit = (cpu.limit or 0, _bytes(memory.limit), gpu.limit or 0)
    state.weight = (cpu.over_quota_weight or 0, memory.over_quota_weight or 0, gpu.over_quota_weight or 0)
    return state


def _bytes(megabytes: float | None) -> float:
    return max(UNLIMITED, (megabytes or 0) * _MEGABYTE)
