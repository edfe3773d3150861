"""Random small clusters for property tests, and everything about a session's state as one value."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from gangdash.engine.model.podgroup import SubGroupSpec, TopologyConstraint
from gangdash.engine.model.selectors import Affinity, LabelSelector, PodAffinityTerm, Taint, Toleration
from gangdash.engine.session import Session
from tests.engine.builders import HOST, RACK, Cluster

QUEUES = ("q0", "q1", "q2")
LONELY = Affinity(anti_required=(PodAffinityTerm(HOST, LabelSelector()),))
"""No other pod of its namespace on its node."""


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """Two to six nodes in two racks, three queues, gangs that run and gangs that wait."""
    cluster = Cluster()
    cluster.topology(RACK)
    free: dict[str, int] = {}
    for index in range(draw(st.integers(2, 6))):
        gpus = draw(st.sampled_from([0, 1, 2, 4]))
        name = f"n{index}"
        free[name] = gpus
        cluster.node(
            name,
            gpus,
            cpu=draw(st.sampled_from([4, 8, 64])),
            labels={RACK: f"r{draw(st.integers(0, 1))}", "pool": draw(st.sampled_from(["a", "b"]))},
            taints=draw(st.sampled_from([(), (Taint("dedicated", "x", "NoSchedule"),)])),
            cordoned=draw(st.integers(0, 9)) == 0,
        )
    cluster.queue("dept", draw(st.sampled_from([-1, 2, 4])), draw(st.sampled_from([-1, 6])))
    for index, name in enumerate(QUEUES):
        quota, limit = draw(st.sampled_from([(-1, -1), (0, -1), (1, 4), (2, -1), (2, 3)]))
        cluster.queue(name, quota, limit, parent="dept", weight=draw(st.integers(0, 2)), created=1000.0 + index)
    for index in range(draw(st.integers(0, 4))):
        _running(draw, cluster, f"run-{index}", free)
    for index in range(draw(st.integers(1, 5))):
        _waiting(draw, cluster, f"wait-{index}")
    return cluster


@st.composite
def contended(draw: st.DrawFn) -> Cluster:
    """Nodes filled by preemptible gangs, also elastic ones and such with pods waiting, of two departments."""
    cluster = Cluster()
    cluster.topology(RACK)
    for index, dept in enumerate(("d0", "d1")):
        cluster.queue(dept, draw(st.sampled_from([-1, 4, 8])), created=900.0 + index)
    for index in range(4):
        quota = draw(st.sampled_from([0, 1, 2, 4]))
        cluster.queue(
            f"q{index}", quota, draw(st.sampled_from([-1, -1, 6])), parent=f"d{index % 2}", created=1000.0 + index
        )
    free: list[str] = []
    for index in range(draw(st.integers(2, 5))):
        gpus = draw(st.sampled_from([2, 4]))
        cluster.node(f"n{index}", gpus, cpu=8, labels={RACK: f"r{index % 2}"})
        free.extend([f"n{index}"] * (gpus - draw(st.sampled_from([0, 0, 1]))))
    free = draw(st.permutations(free))
    index = 0
    while free:
        size = min(draw(st.sampled_from([1, 1, 2, 3])), len(free))
        places, free = free[:size], free[size:]
        extra = draw(st.sampled_from([0, 0, 0, 1]))
        cluster.gang(
            f"run-{index}",
            size + extra,
            queue=f"q{draw(st.integers(0, 3))}",
            kind=draw(st.sampled_from(["train", "train", "build-preemptible", "build"])),
            minimum=draw(st.integers(1, size)),
            on=places,
            age=draw(st.integers(100, 9000)),
        )
        index += 1
    for index in range(draw(st.integers(1, 4))):
        _asking(draw, cluster, f"wait-{index}")
    return cluster


def _asking(draw: st.DrawFn, cluster: Cluster, name: str) -> None:
    """Add a gang of whole GPUs that waits."""
    cluster.gang(
        name,
        draw(st.integers(1, 4)),
        draw(st.sampled_from([1, 1, 2])),
        queue=f"q{draw(st.integers(0, 3))}",
        kind=draw(st.sampled_from(["train", "build-preemptible", "build", "inference"])),
        cpu=draw(st.sampled_from([0, 3])),
        namespace=draw(st.sampled_from(["team", "team", "lab"])),
        pod=draw(st.sampled_from([None, None, {"affinity": LONELY}])),
        topology=draw(st.sampled_from([None, None, TopologyConstraint("topo", RACK, "")])),
        age=draw(st.integers(100, 9000)),
    )


def _running(draw: st.DrawFn, cluster: Cluster, name: str, free: dict[str, int]) -> None:
    gpus = draw(st.sampled_from([1, 2, 0.5]))
    pods = draw(st.integers(1, 3))
    places = []
    for _ in range(pods):
        fitting = [node for node, left in free.items() if left >= gpus]
        if not fitting:
            break
        node = draw(st.sampled_from(fitting))
        free[node] -= 1 if gpus < 1 else int(gpus)
        places.append(node)
    if not places:
        return
    cluster.gang(
        name,
        0,
        queue=draw(st.sampled_from(QUEUES)),
        kind=draw(st.sampled_from(["train", "build"])),
        age=draw(st.integers(100, 9000)),
        group={"min_member": draw(st.integers(1, len(places)))},
    )
    for index, node in enumerate(places):
        labels = {"runai-gpu-group": f"{name}-{index}"} if gpus < 1 else {}
        deleted = draw(st.sampled_from([None, None, None, -20, 60, 500]))
        cluster.pod(name, index, gpus, on=node, labels=labels, deleted=deleted)


def _waiting(draw: st.DrawFn, cluster: Cluster, name: str) -> None:
    pods = draw(st.integers(1, 4))
    topology = None
    if draw(st.booleans()):
        required, preferred = draw(st.sampled_from([(RACK, ""), ("", RACK), (RACK, RACK), ("", "none")]))
        topology = TopologyConstraint("topo", required, preferred)
    specs: tuple[SubGroupSpec, ...] = ()
    if draw(st.integers(0, 3)) == 0:
        specs = (SubGroupSpec("a", min_member=1), SubGroupSpec("b", min_member=draw(st.integers(0, 2))))
    fields: dict[str, Any] = {}
    if draw(st.booleans()):
        fields["tolerations"] = (Toleration(operator="Exists"),)
    if draw(st.integers(0, 3)) == 0:
        fields["node_selector"] = {"pool": draw(st.sampled_from(["a", "b"]))}
    cluster.gang(
        name,
        0,
        queue=draw(st.sampled_from(QUEUES)),
        kind=draw(st.sampled_from(["train", "build", "inference"])),
        topology=topology,
        sub_groups=specs,
        age=draw(st.integers(100, 9000)),
        group=None if specs else {"min_member": draw(st.integers(0, pods))},
    )
    gpus = draw(st.sampled_from([0, 1, 2, 0.5]))
    for index in range(pods):
        part = draw(st.sampled_from(["a", "b"])) if specs else ""
        cluster.pod(name, index, gpus, cpu=draw(st.sampled_from([0, 1, 3])), sub_group=part, fields=fields)


def state_of(session: Session) -> dict[str, Any]:
    """Return all that a statement may change."""
    return {
        "nodes": {
            name: (
                list(node.idle),
                list(node.used),
                list(node.releasing),
                dict(node.shared.used),
                dict(node.shared.releasing),
                dict(node.shared.allocated),
                set(node.shared.marked),
                dict(node.device_users),
                {key: placed[1:] for key, placed in node.placed.items()},
                node.stamp,
            )
            for name, node in session.nodes.items()
        },
        "tasks": {uid: task.save() for uid, task in session.tasks.items()},
        "jobs": {
            key: (
                list(job.allocated),
                job.pending,
                {
                    name: (part.active_allocated, part.active_used, part.alive, _counts(part.by_status))
                    for name, part in job.pod_sets.items()
                },
            )
            for key, job in session.jobs.items()
        },
        "queues": {name: queue.save() for name, queue in session.queues.items()},
    }


def _counts(by_status: dict[Any, int]) -> dict[Any, int]:
    return {status: count for status, count in by_status.items() if count}
