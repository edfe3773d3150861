"""Which shared GPUs of a node a task for part of a GPU gets: groups in use, or free GPUs made into new ones.

Mirrors pkg/scheduler/gpu_sharing/gpuSharing.go and the GPU order of plugins gpupack and gpuspread
(KAI d5bc503a). Groups of equal score have no order in the scheduler; their names decide here.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from gangdash.engine.session import GPU, NodeState, Session, TaskState

NEW_GROUP = "new-gpu-"
"""Groups made in a cycle; a group of the cluster is a UUID or a number."""


@dataclass(frozen=True, slots=True)
class Choice:
    """``is_releasing``: the task has to wait for others to leave."""

    groups: tuple[str, ...]
    is_releasing: bool


def install_pack(session: Session) -> None:
    session.hooks.gpu_scores.append(lambda _, node, group: 0.0 if group is None else _used_portion(node, group))


def install_spread(session: Session) -> None:
    session.hooks.gpu_scores.append(lambda _, node, group: 1.0 if group is None else 1 - _used_portion(node, group))


def _used_portion(node: NodeState, group: str) -> float:
    return node.shared.used[group] / node.gpu_memory


def choose_groups(session: Session, task: TaskState, node: NodeState, *, pipeline_only: bool) -> Choice | None:
    """Return the groups for the task's devices, ``None`` where the node has too few."""
    fits_now = not pipeline_only and node.fits_idle(task)
    need, releasing = node.memory_need(task.gpu), False
    chosen: list[str] = []
    for group in _fitting(session, task, node):
        if group is None:
            chosen.append(_new_name(node, chosen))
            releasing = releasing or not fits_now
        else:
            chosen.append(group)
            takes_now = node.shared.takes_now(group, need, node.gpu_memory)
            releasing = releasing or not takes_now or not node.fits_idle(task)
        if len(chosen) == task.gpu.count:
            return Choice(tuple(chosen), releasing)
    return None


def _fitting(session: Session, task: TaskState, node: NodeState) -> list[str | None]:
    """Return groups that take the task and one ``None`` per free or releasing GPU, best first."""
    need = node.memory_need(task.gpu)
    found: list[str | None] = [
        group for group in sorted(node.shared.used) if node.shared.takes(group, need, node.gpu_memory)
    ]
    found.extend([None] * (int(node.idle[GPU]) + int(node.releasing[GPU])))
    scores = session.hooks.gpu_scores
    return sorted(found, key=lambda group: -sum(score(task, node, group) for score in scores))


def _new_name(node: NodeState, taken: list[str]) -> str:
    """Return a name that no group of the node has; where an attempt was undone the name may come again."""
    names = (f"{NEW_GROUP}{number}" for number in itertools.count(1))
    return next(name for name in names if name not in node.shared.used and name not in taken)
