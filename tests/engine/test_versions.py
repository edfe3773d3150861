"""An older scheduler: its own rules where they are simple, and said so where they are not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gangdash.engine.cycle import run_cycle
from gangdash.engine.model.config import DEFAULT_PLUGINS, Plugin, Shard
from gangdash.engine.model.cycle import CycleResult
from gangdash.engine.model.pod import Container, PodClaim
from gangdash.engine.model.podgroup import SubGroupSpec, TopologyConstraint
from gangdash.engine.model.topology import Topology, TopologyLevel
from gangdash.engine.model.version import named, parsed, running
from tests.engine.builders import RACK, Cluster, gang_of, outcome

WITHOUT_GENERATORS = tuple(Plugin(name) for name in DEFAULT_PLUGINS if not name.startswith("sg-"))


def run_as(cluster: Cluster, version: str) -> CycleResult:
    snapshot = cluster.snapshot()
    return run_cycle(snapshot, replace(snapshot.shards[0], version=version))


@pytest.mark.parametrize(
    "tag, version",
    [
        ("v0.16.3", (0, 16, 3)),
        ("0.14", (0, 14, 0)),
        ("v0.17.0-fips", (0, 17, 0)),
        ("v1.2.0", (1, 2, 0)),
        ("0.0.0-d5bc503a", None),
        ("latest", None),
        ("", None),
    ],
)
def test_tag_names_a_release_or_none(tag: str, version: tuple[int, int, int] | None) -> None:
    assert parsed(tag) == version


def test_release_is_written_as_people_do() -> None:
    assert (named((0, 16, 0)), named((0, 17, 1))) == ("v0.16", "v0.17.1")


def test_snapshot_whose_plugins_name_no_generator_is_of_an_older_scheduler() -> None:
    config = replace(Cluster().config, plugins=WITHOUT_GENERATORS)
    assert running(Shard(config=config, source=("config", "schedulerParams"))) == (0, 15, 0)
    assert running(Shard(config=config)) is None
    assert running(Shard(config=replace(config, actions=("allocate",)), source=("config", "schedulerParams"))) is None
    assert running(Shard(config=config, source=("config", "schedulerParams"), version="v0.16.1")) == (0, 16, 1)


# What is followed


def _full(delay: float | None = None) -> Cluster:
    cluster = Cluster()
    cluster.node("n0", 1)
    cluster.gang("old", on=["n0"])
    cluster.gang("new", kind="inference", age=60, group={"preemption_delay": delay})
    return cluster


@pytest.mark.parametrize(
    "version, result", [("", "unschedulable"), ("v0.17.0", "unschedulable"), ("v0.16.4", "pipelined")]
)
def test_preemption_delay_holds_from_its_release_on(version: str, result: str) -> None:
    assert outcome(run_as(_full(delay=600), version), "new") == result


@pytest.mark.parametrize("version, result", [("v0.17.0", "kept"), ("v0.16.0", "evicted")])
def test_own_grace_of_a_stale_gang_holds_from_its_release_on(version: str, result: str) -> None:
    cluster = Cluster()
    cluster.node("n0", 1)
    stale = {"kai.scheduler/stale-podgroup-timestamp": "2027-01-15T07:50:00Z"}
    made = cluster.gang("stale", on=["n0"], minimum=2, group={"staleness_grace": -1.0})
    cluster.podgroups[-1] = replace(cluster.podgroups[-1], meta=replace(made.meta, annotations=stale))
    assert outcome(run_as(cluster, version), "stale") == result


@pytest.mark.parametrize("version, result", [("v0.17.0", "bound"), ("v0.16.0", "unschedulable")])
def test_alias_of_a_level_is_known_from_its_release_on(version: str, result: str) -> None:
    cluster = Cluster()
    cluster.node("n0", 2, labels={RACK: "r0"})
    cluster.topologies.append(Topology(replace(cluster.nodes[0].meta, name="topo"), (TopologyLevel(RACK, "rack"),)))
    cluster.gang("new", 2, topology=TopologyConstraint("topo", "rack"))
    assert outcome(run_as(cluster, version), "new") == result


@pytest.mark.parametrize("version, result", [("v0.15.0", "unschedulable"), ("v0.14.1", "pipelined")])
def test_pod_that_does_not_go_is_waited_for_before_the_threshold(version: str, result: str) -> None:
    cluster = Cluster()
    cluster.node("n0", 1)
    cluster.gang("old", 0, kind="build")
    cluster.pod("old", 0, on="n0", deleted=600)
    cluster.gang("new", kind="build")
    assert outcome(run_as(cluster, version), "new") == result


@pytest.mark.parametrize("version, result", [("v0.13.0", "bound"), ("v0.12.9", "unschedulable")])
def test_minimum_of_subgroups_is_known_from_its_release_on(version: str, result: str) -> None:
    cluster = Cluster()
    cluster.node("n0", 1)
    parts = (SubGroupSpec("a", min_member=1), SubGroupSpec("b", min_member=1))
    cluster.gang("new", 0, sub_groups=parts, min_sub_group=1)
    for part in ("a", "b"):
        cluster.pod("new", 0, sub_group=part)
    assert outcome(run_as(cluster, version), "new") == result


def test_completed_pods_are_unseen_in_one_release_alone() -> None:
    cluster = Cluster()
    cluster.node("n0", 2)
    cluster.gang("done", 1, minimum=2, on=["n0"], group={"staleness_grace": 0.0})
    cluster.pod("done", 1, on="n0", status="Succeeded")
    assert outcome(run_as(cluster, "v0.17.1"), "done") == "kept"
    result = gang_of(run_as(cluster, "v0.17.0"), "done")
    assert {pod.name: str(pod.outcome) for pod in result.pods} == {"done-0": "evicted", "done-1": "kept"}


@pytest.mark.parametrize("version, result", [("v0.17.0", "bound"), ("v0.16.0", "unschedulable")])
def test_memory_counts_as_a_part_of_the_smallest_gpu_before_the_fix(version: str, result: str) -> None:
    """10,000 MiB are a whole small GPU and a quarter of a large one; the limit leaves half a GPU."""
    cluster = Cluster()
    cluster.queue("q", limit=0.5)
    cluster.node("small", 1, gpu_memory=10_000)
    cluster.node("large", 1, gpu_memory=40_000)
    cluster.gang("new", 0, group={"min_member": 1})
    cluster.pod("new", 0, 0, annotations={"gpu-memory": "10000"})
    assert outcome(run_as(cluster, version), "new") == result
    assert _told(cluster, "v0.16.0") == ("smallest GPU memory before v0.17",)


# What is told


def _told(cluster: Cluster, version: str, name: str = "new") -> tuple[str, ...]:
    return gang_of(run_as(cluster, version), name).not_modelled


def _waiting(**gang: Any) -> Cluster:
    cluster = Cluster()
    cluster.node("n0", 8, labels={RACK: "r0"})
    cluster.topology(RACK)
    cluster.gang("new", **gang)
    return cluster


def _claimed() -> Cluster:
    fields = {"claims": (PodClaim("gpu", claim="shared"),)}
    return _waiting(pods=2, gpus=0, pod=fields)


def _with_sidecar() -> Cluster:
    cluster = _waiting()
    log = Container("log", "sidecar", requests={"cpu": 100})
    cluster.pods[-1] = replace(cluster.pods[-1], containers=(*cluster.pods[-1].containers, log))
    return cluster


def _deep() -> Cluster:
    cluster = _waiting()
    for name, parent in (("top", ""), ("dept", "top"), ("q", "dept")):
        cluster.queue(name, parent=parent)
    return cluster


PARTS = (SubGroupSpec("up"), SubGroupSpec("a", "up", min_member=0), SubGroupSpec("b", "up", min_member=1))


@pytest.mark.parametrize(
    "cluster, before, since, text",
    [
        pytest.param(_waiting(pods=1, minimum=0), "v0.17.0", "v0.17.1", "minimum of 0 pods before v0.17.1", id="zero"),
        pytest.param(_claimed(), "v0.17.0", "v0.17.1", "devices shared through one claim before v0.17.1", id="claim"),
        pytest.param(_claimed(), "v0.12.0", "v0.13.0", "GPUs of device claims before v0.13", id="claims at all"),
        pytest.param(_full(), "v0.15.9", "v0.16.0", "search for victims before v0.16", id="search"),
        pytest.param(_with_sidecar(), "v0.14.9", "v0.15.0", "native sidecars before v0.15", id="sidecar"),
        pytest.param(
            _waiting(pods=0, sub_groups=PARTS),
            "v0.13.4",
            "v0.14.0",
            "subgroups with a minimum of 0 before v0.14",
            id="0",
        ),
        pytest.param(
            _waiting(pods=0, sub_groups=PARTS), "v0.9.1", "v0.10.0", "subgroups below subgroups before v0.10", id="tree"
        ),
        pytest.param(
            _waiting(sub_groups=PARTS, min_sub_group=1),
            "v0.14.0",
            "v0.15.0",
            "minimums of subgroups before v0.15",
            id="some",
        ),
        pytest.param(_deep(), "v0.12.9", "v0.13.0", "queues deeper than two levels before v0.13", id="deep"),
        pytest.param(
            _waiting(topology=TopologyConstraint("topo", RACK)),
            "v0.11.0",
            "v0.12.0",
            "topologies before v0.12",
            id="rack",
        ),
    ],
)
def test_gang_is_told_what_its_release_does_otherwise(cluster: Cluster, before: str, since: str, text: str) -> None:
    assert text in _told(cluster, before)
    assert text not in _told(cluster, since)
    assert _told(cluster, "") == ()


def test_gang_that_no_difference_touches_is_told_nothing() -> None:
    cluster = _waiting()
    assert _told(cluster, "v0.12.0") == ()
    assert "placement before v0.9" in _told(_full(), "v0.8.5")


def test_reclaim_and_gpu_memory_are_told_apart_by_what_they_touch() -> None:
    cluster = Cluster()
    cluster.node("n0", 1)
    cluster.queue("rich", 0)
    cluster.queue("poor", 1)
    cluster.gang("old", queue="rich", on=["n0"])
    cluster.gang("new", queue="poor")
    result = run_as(cluster, "v0.16.0")
    assert gang_of(result, "new").not_modelled == ("order of reclaim's victims before v0.17",)
    assert gang_of(result, "old").not_modelled == ("order of reclaim's victims before v0.17",)


def test_older_scheduler_searches_for_victims_without_naming_how() -> None:
    cluster = _full()
    cluster.config = replace(cluster.config, plugins=WITHOUT_GENERATORS)
    assert outcome(run_as(cluster, "v0.17.0"), "new") == "unschedulable"
    assert outcome(run_as(cluster, "v0.15.0"), "new") == "pipelined"
