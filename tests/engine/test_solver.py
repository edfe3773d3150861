"""The search for victims, part by part: views of gangs, filters, growing trials, budgets, what need not be tried."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gangdash.engine.actions import solver_filters, solver_generators
from gangdash.engine.actions.ordering import JobsByQueue, Selection
from gangdash.engine.actions.solver import End, JobSolver, Means, _Search
from gangdash.engine.actions.solver_bounds import Bounds, SlotCache
from gangdash.engine.actions.solver_budget import ActionBudget, trial_seconds
from gangdash.engine.actions.solver_capacity import Capacities, future_gpus
from gangdash.engine.actions.solver_failed import FailedJobs, is_easier, is_smaller, signature
from gangdash.engine.actions.solver_generators import Ground, multi_node_gang, node_local_greedy
from gangdash.engine.actions.solver_trial import Ask, Batch, Trial
from gangdash.engine.actions.solver_views import next_to_evict, part_of, view_of
from gangdash.engine.model.meta import Meta
from gangdash.engine.model.pod import PodVolumes
from gangdash.engine.model.podgroup import SubGroupSpec, TopologyConstraint
from gangdash.engine.model.selectors import Affinity, NodeSelectorTerm, Requirement
from gangdash.engine.model.storage import PersistentVolumeClaim
from gangdash.engine.plugins import open_session
from gangdash.engine.session import JobState, Session, Status
from tests.engine.builders import HOST, RACK, Cluster, gang_of, outcome


def opened(cluster: Cluster) -> Session:
    snapshot = cluster.snapshot()
    return open_session(snapshot, snapshot.shards[0])


def ask_of(session: Session, name: str, count: int | None = None) -> Ask:
    job = session.jobs[name]
    pending = [task for task in job.tasks.values() if task.status is Status.PENDING][:count]
    return Ask.of(session, job, part_of(job, pending))


# Views


def _tree() -> Cluster:
    """Two subgroups, ``b`` with one pod more than it needs; one of two is enough, both run."""
    cluster = Cluster()
    cluster.node("n0", 8)
    parts = (SubGroupSpec("a", min_member=1), SubGroupSpec("b", min_member=1))
    cluster.gang("g", 0, sub_groups=parts, min_sub_group=1)
    for part, pods in (("a", 1), ("b", 2)):
        for index in range(pods):
            cluster.pod("g", index, on="n0", sub_group=part)
    return cluster


def _names(session: Session, job: JobState) -> tuple[list[str], bool]:
    tasks, has_more = next_to_evict(session, job)
    return [task.name for task in tasks], has_more


def test_victim_gives_surplus_pods_then_a_surplus_subgroup_then_the_rest() -> None:
    session = opened(_tree())
    job = session.jobs["g"]
    assert _names(session, job) == (["g-b-1"], True)
    job = view_of(job, [task for task in job.tasks.values() if task.name != "g-b-1"])
    assert _names(session, job) == (["g-b-0"], True)
    job = view_of(job, [task for task in job.tasks.values() if task.name == "g-a-0"])
    assert _names(session, job) == (["g-a-0"], False)


def test_surplus_below_an_inner_group_goes_before_a_whole_one() -> None:
    cluster = Cluster()
    cluster.node("n0", 8)
    parts = (
        SubGroupSpec("up", min_sub_group=1),
        SubGroupSpec("a", "up", min_member=1),
        SubGroupSpec("b", "up", min_member=1),
        SubGroupSpec("c", min_member=1),
    )
    cluster.gang("g", 0, sub_groups=parts)
    for part in ("a", "b", "c"):
        cluster.pod("g", 0, on="n0", sub_group=part)
    session = opened(cluster)
    job = session.jobs["g"]
    assert _names(session, job) == (["g-b-0"], True)
    left = view_of(job, [task for task in job.tasks.values() if task.name != "g-b-0"])
    assert set(_names(session, left)[0]) == {"g-a-0", "g-c-0"}


def test_gang_below_its_minimum_goes_whole() -> None:
    cluster = Cluster()
    cluster.node("n0", 8)
    cluster.gang("g", 2, minimum=3, on=["n0", "n0"])
    session = opened(cluster)
    assert _names(session, session.jobs["g"]) == (["g-1", "g-0"], False)


def test_part_under_trial_needs_no_more_than_it_holds() -> None:
    cluster = Cluster()
    parts = (SubGroupSpec("up"), SubGroupSpec("a", "up", min_member=2), SubGroupSpec("b", "up", min_member=1))
    cluster.gang("g", 0, sub_groups=parts, min_sub_group=1)
    for part, pods in (("a", 2), ("b", 1)):
        for index in range(pods):
            cluster.pod("g", index, sub_group=part)
    job = opened(cluster).jobs["g"]
    view = part_of(job, [task for task in job.tasks.values() if task.name == "g-a-0"])
    assert {name: part.min_available for name, part in view.pod_sets.items()} == {"a": 1, "b": 1}
    assert (view.root.min_sub_group, list(view.tasks)) == (1, ["pod-team-g-a-0"])
    assert job.pod_sets["a"].min_available == 2
    assert view.pending == 1


# What failed before


def _pair(mine: dict[str, Any], other: dict[str, Any]) -> tuple[Session, JobState, JobState]:
    cluster = Cluster()
    cluster.node("n0", 8)
    cluster.gang("mine", **mine)
    cluster.gang("other", **other)
    session = opened(cluster)
    return session, session.jobs["mine"], session.jobs["other"]


@pytest.mark.parametrize(
    "mine, other, easier, smaller",
    [
        pytest.param({"pods": 2}, {"pods": 2}, False, True, id="the same"),
        pytest.param({"pods": 1}, {"pods": 2}, True, True, id="fewer pods"),
        pytest.param({"pods": 3}, {"pods": 2}, False, False, id="more pods"),
        pytest.param({"gpus": 1}, {"gpus": 2}, True, True, id="smaller pods"),
        pytest.param({"gpus": 2}, {"gpus": 1}, False, False, id="larger pods"),
        pytest.param({"gpus": 1, "cpu": 4}, {"gpus": 2, "cpu": 1}, False, False, id="neither fits into the other"),
        pytest.param({"pods": 3, "gpus": 1}, {"pods": 2, "gpus": 2}, True, False, id="more and smaller pods"),
        pytest.param({"on": ["n0"]}, {"pods": 2}, False, False, id="nothing waits"),
        pytest.param({"pods": 1}, {"on": ["n0"]}, False, False, id="the other does not wait"),
    ],
)
def test_easier_and_smaller_gangs(mine: dict[str, Any], other: dict[str, Any], *, easier: bool, smaller: bool) -> None:
    _, left, right = _pair(mine, other)
    assert (is_easier(left, right), is_smaller(left, right)) == (easier, smaller)


def test_sizes_are_compared_in_the_order_of_what_fits_into_what() -> None:
    """The first pods of the two lists do not compare; the second ones do."""
    cluster = Cluster()
    cluster.node("n0", 8)
    for name, sizes in (("mine", ((1, 4), (2, 8))), ("other", ((1, 4), (3, 8)))):
        cluster.gang(name, 0, group={"min_member": 2})
        for index, (gpus, cpu) in enumerate(reversed(sizes)):
            cluster.pod(name, index, gpus, cpu=cpu)
    session = opened(cluster)
    assert is_easier(session.jobs["mine"], session.jobs["other"])
    assert not is_easier(session.jobs["other"], session.jobs["mine"])
    assert not is_smaller(session.jobs["other"], session.jobs["mine"])


def test_only_an_easier_gang_of_the_same_kind_is_tried_again() -> None:
    session, mine, other = _pair({"gpus": 2}, {"gpus": 2})
    record = FailedJobs(session)
    record.add(other)
    assert record.no_harder(mine) is other
    session, mine, other = _pair({"gpus": 1}, {"gpus": 2})
    record = FailedJobs(session)
    record.add(other)
    assert record.no_harder(mine) is None
    record.add(mine)
    assert record.no_harder(other) is mine


def test_the_smallest_failure_stands_for_its_kind() -> None:
    session, small, large = _pair({"gpus": 1}, {"gpus": 2})
    record = FailedJobs(session)
    record.add(small)
    record.add(large)
    assert record.no_harder(large) is small
    assert record.no_harder(small) is small


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"node_selector": {"pool": "a"}}, id="selector"),
        pytest.param({"priority": 7}, id="priority"),
        pytest.param({"volumes": PodVolumes(ephemeral=("scratch",))}, id="volume of its own"),
        pytest.param({"volumes": PodVolumes(claims=("data",))}, id="volume claim"),
    ],
)
def test_signature_tells_what_nodes_must_offer(fields: dict[str, Any]) -> None:
    session, mine, other = _pair({"pod": fields}, {})
    assert signature(session, mine) != signature(session, other)
    record = FailedJobs(session)
    record.add(other)
    assert record.no_harder(mine) is None


def test_claims_of_volumes_count_by_class_where_the_scheduler_looks_at_them() -> None:
    def signatures(*, looks: bool) -> set[str]:
        cluster = Cluster()
        cluster.params(schedule_csi_storage=looks)
        for name in ("one", "two"):
            cluster.gang(name, pod={"volumes": PodVolumes(claims=(name,))})
        claims = tuple(
            PersistentVolumeClaim(Meta(name, "team"), storage_class="fast", requested_bytes=5)
            for name in ("one", "two")
        )
        cluster.extra["volume_claims"] = claims
        session = opened(cluster)
        return {signature(session, session.jobs[name]) for name in ("one", "two")}

    assert len(signatures(looks=True)) == 1
    assert len(signatures(looks=False)) == 2


def test_signature_knows_the_constraints_of_all_groups_above() -> None:
    session, mine, other = _pair({"topology": TopologyConstraint("topo", RACK)}, {})
    assert signature(session, mine) != signature(session, other)


# Filters


@pytest.mark.parametrize(
    "wanted, holders, fit",
    [
        ([4, 2], [4, 2], True),
        ([4, 2], [6], True),
        ([4, 2], [5, 1], False),
        ([4, 3, 1], [5, 3], True),
        ([2, 0, 9], [2], True),
        ([1], [], False),
        ([2, 2, 2], [4, 1], False),
    ],
)
def test_wants_find_holders_from_the_largest(wanted: Sequence[float], holders: Sequence[float], *, fit: bool) -> None:
    assert solver_filters.matches_greedily(wanted, holders) is fit


@given(
    free=st.lists(st.integers(0, 8), min_size=1, max_size=5),
    held=st.lists(st.integers(0, 4), min_size=1, max_size=6),
    pods=st.integers(1, 4),
    size=st.integers(1, 4),
)
def test_counting_places_says_what_matching_says(free: list[int], held: list[int], pods: int, size: int) -> None:
    """For pods of one size, at every stage of a growing trial."""
    cluster = Cluster()
    for index, gpus in enumerate(free):
        cluster.node(f"n{index}", gpus + 24)
        cluster.gang(f"fixed-{index}", 1, 24, on=[f"n{index}"])
    for index, gpus in enumerate(held):
        if gpus:
            cluster.nodes[index % len(free)] = _with_gpus(cluster, index % len(free), gpus)
            cluster.gang(f"old-{index}", 1, gpus, on=[f"n{index % len(free)}"])
    cluster.gang("new", pods, size)
    session = opened(cluster)
    capacities = Capacities(session)
    capacities.refresh()
    trial = Trial(ask_of(session, "new"), ())
    wanted = [float(size)] * pods
    counted = solver_filters.EqualGpuFilter(wanted, capacities)
    matched = solver_filters.GpuFilter(wanted, capacities)
    assert counted.allows(trial) == matched.allows(trial)
    for index, gpus in enumerate(held):
        if gpus:
            job = session.jobs[f"old-{index}"]
            trial.add(Batch(job, tuple(job.tasks.values())))
            assert counted.allows(trial) == matched.allows(trial)


def _with_gpus(cluster: Cluster, index: int, more: int) -> Any:
    node = cluster.nodes[index]
    amounts = {**node.allocatable, "nvidia.com/gpu": node.allocatable["nvidia.com/gpu"] + more}
    return replace(node, allocatable=amounts)


def _needing(name: str) -> Affinity:
    term = NodeSelectorTerm((Requirement(HOST, "In", (name,)),))
    return Affinity(node_required=(term,))


def test_affinity_is_met_once_a_victim_opens_the_node() -> None:
    cluster = Cluster()
    cluster.node("n0", 1)
    cluster.node("n1", 1)
    cluster.gang("old", on=["n1"])
    cluster.gang("new", pod={"affinity": _needing("n1")})
    session = opened(cluster)
    trial = Trial(ask_of(session, "new"), ())
    filter_ = solver_filters.AffinityFilter(session, trial, {"n0": session.nodes["n0"]})
    assert not filter_.allows(trial)
    job = session.jobs["old"]
    trial.add(Batch(job, tuple(job.tasks.values())))
    assert filter_.allows(trial)


def test_affinity_to_names_that_exclude_each_other_is_never_met() -> None:
    fields = tuple(NodeSelectorTerm(match_fields=(Requirement("metadata.name", "In", (n,)),)) for n in ("n0",))
    both = NodeSelectorTerm(
        match_fields=(Requirement("metadata.name", "In", ("n0",)), Requirement("metadata.name", "In", ("n1",)))
    )
    for terms, is_met in ((fields, True), ((both,), False)):
        cluster = Cluster()
        cluster.node("n0", 1)
        cluster.gang("new", pod={"affinity": Affinity(node_required=terms)})
        session = opened(cluster)
        trial = Trial(ask_of(session, "new"), ())
        assert solver_filters.AffinityFilter(session, trial, session.nodes).allows(trial) is is_met


def _grouped() -> Cluster:
    """Two racks of one node with two GPUs each, all held; a gang whose inner group needs one rack for three."""
    cluster = Cluster()
    cluster.racks({"r0": {"n0": 2}, "r1": {"n1": 3}})
    for index, name in enumerate(("n0", "n0", "n1", "n1", "n1")):
        cluster.gang(f"old-{index}", on=[name])
    parts = (
        SubGroupSpec("up", topology=TopologyConstraint("topo", RACK)),
        SubGroupSpec("a", "up", min_member=3),
    )
    cluster.gang("new", 0, sub_groups=parts, kind="build")
    for index in range(3):
        cluster.pod("new", index, sub_group="a")
    return cluster


def test_inner_group_needs_a_domain_for_all_of_its_pods() -> None:
    session = opened(_grouped())
    capacities = Capacities(session)
    capacities.refresh()
    trial = Trial(ask_of(session, "new"), ())
    filters = solver_filters.filters_for(session, trial, session.nodes, capacities)
    domain = next(f for f in filters if isinstance(f, solver_filters.DomainFilter))
    allowed = []
    for index in range(5):
        job = session.jobs[f"old-{index}"]
        trial.add(Batch(job, tuple(job.tasks.values())))
        allowed.append(domain.allows(trial))
    assert allowed == [False, False, False, False, True]


def test_inner_group_takes_the_domain_that_can_be_emptied() -> None:
    result = _grouped().run("allocate", "preempt")
    assert {pod.node for pod in gang_of(result, "new").pods} == {"n1"}
    assert [outcome(result, f"old-{index}") for index in range(5)] == ["kept"] * 2 + ["evicted"] * 3


# Trials


def _row(held: Sequence[Sequence[str]], gpus: int = 2, nodes: int = 3) -> Session:
    """Nodes ``n0``... of some GPUs, gangs ``old-i`` of one-GPU pods on the nodes named, the first one the oldest."""
    cluster = Cluster()
    for index in range(nodes):
        cluster.node(f"n{index}", gpus)
    for index, places in enumerate(held):
        cluster.gang(f"old-{index}", len(places), on=places, age=900 - index)
    cluster.gang("new", 1, gpus, kind="build")
    return opened(cluster)


def _ground(session: Session) -> Ground:
    capacities = Capacities(session)
    capacities.refresh()

    def victims() -> JobsByQueue:
        queue = JobsByQueue(session, victims=True)
        queue.add((job for job in session.jobs.values() if job.key.startswith("old")), Selection(only_active=True))
        return queue

    return Ground(session, {}, capacities, victims)


def _shown(trials: Any) -> list[list[str]]:
    return [sorted(batch.job.name for batch in trial.batches) for trial in trials]


def test_node_local_trials_take_all_victims_of_one_node() -> None:
    session = _row([["n0", "n1"], ["n0"], ["n1", "n2"]])
    trials = _shown(node_local_greedy(_ground(session), ask_of(session, "new"), ()))
    # The latest gang empties n2; of n1, where it has a pod too, that would be the same trial.
    assert trials == [["old-2"], ["old-1"], ["old-0", "old-1"], ["old-0", "old-2"]]


def test_multi_node_trials_grow_over_the_nodes_with_least_room() -> None:
    session = _row([["n0", "n0"], ["n1", "n1"], ["n2", "n2"]])
    trials = _shown(multi_node_gang(_ground(session), ask_of(session, "new"), ()))
    assert trials[0] == ["old-2"]
    assert trials[1:] == [["old-2"], ["old-1", "old-2"], ["old-2"], ["old-1", "old-2"], ["old-0", "old-1", "old-2"]]


def test_recorded_victims_are_not_taken_twice() -> None:
    session = _row([["n0", "n0"], ["n1", "n1"]])
    job = session.jobs["old-1"]
    recorded = (Batch(job, tuple(job.tasks.values())),)
    for trials in (node_local_greedy, multi_node_gang):
        assert _shown(trials(_ground(session), ask_of(session, "new"), recorded)) == [[], ["old-0"]]


def test_rest_of_a_recorded_gang_is_taken_later() -> None:
    session = _row([["n0", "n0"]])
    job = session.jobs["old-0"]
    first, second = job.tasks.values()
    recorded = (Batch(job, (first,)),)
    found = list(multi_node_gang(_ground(session), ask_of(session, "new"), recorded))
    assert [task.uid for task in found[-1].victims()] == [first.uid, second.uid]


@pytest.mark.parametrize(
    "room, demand, fewest",
    [([1, 2, 3], 3, 2), ([1, 2, 3], 4, 3), ([1], 2, None), ([], 0, 0), ([5], -1, 0), ([2, 2], 2, 1)],
)
def test_fewest_nodes_that_cover_a_demand(room: list[float], demand: float, fewest: int | None) -> None:
    assert solver_generators._fewest_covering(room, demand) == fewest


@pytest.mark.parametrize(
    "first, most, counts",
    [(None, 5, []), (5, 5, [5]), (1, 9, [1, 2, 4, 8, 9]), (0, 1, [0, 1]), (3, 2, [3])],
)
def test_numbers_of_nodes_grow_ever_faster(first: int | None, most: int, counts: list[int]) -> None:
    assert list(solver_generators._growing(first, most)) == counts


# Capacities


def test_gpus_of_nodes_count_shared_mig_and_terminating_ones() -> None:
    cluster = Cluster()
    cluster.node("shared", 2)
    cluster.node("mig", 0, resources={"nvidia.com/mig-1g.5gb": 3, "nvidia.com/mig-2g.10gb": 1})
    cluster.node("going", 4)
    cluster.pod("", 0, 0.25, on="shared", labels={"runai-gpu-group": "a"})
    cluster.pod("", 1, 0.5, on="shared", labels={"runai-gpu-group": "a"}, deleted=-5)
    cluster.pod("", 2, 0, on="mig", requests={"nvidia.com/mig-2g.10gb": 1}, deleted=-5)
    cluster.pod("", 3, 3, on="going", deleted=-5)
    cluster.node("calm", 2)
    cluster.pod("", 4, 0.25, on="calm", labels={"runai-gpu-group": "a"})
    session = opened(cluster)
    gpus = {"calm": 1.75, "going": 4, "mig": 5, "shared": 1.75}
    assert {name: future_gpus(node) for name, node in session.nodes.items()} == gpus
    capacities = Capacities(session)
    capacities.refresh()
    assert capacities.whole_slots(2.0) == 4
    assert capacities.of_domains(HOST) == gpus


def test_free_parts_of_shared_gpus_count_where_no_node_has_mig() -> None:
    cluster = Cluster()
    cluster.node("n0", 2)
    cluster.pod("", 0, 0.25, on="n0", labels={"runai-gpu-group": "a"})
    assert future_gpus(opened(cluster).nodes["n0"]) == 1.75


# Bounds


def test_room_in_one_rack_is_needed_where_the_gang_asks_for_it() -> None:
    cluster = Cluster()
    cluster.racks({"r0": {"n0": 2}, "r1": {"n1": 2}})
    cluster.gang("old", 4, minimum=1, on=["n0", "n0", "n1", "n1"])
    cluster.gang("near", 2, 2, topology=TopologyConstraint("topo", RACK))
    cluster.gang("far", 2, 2)
    session = opened(cluster)
    victims = list(session.jobs["old"].tasks.values())
    short = {}
    for name in ("near", "far"):
        bounds = Bounds(session, ask_of(session, name), session.nodes, None, SlotCache())
        short[name] = [bounds.are_short(victims[:count]) for count in range(5)]
    assert short == {"near": [True] * 5, "far": [True, True, True, True, False]}


def test_victims_that_may_lose_too_little_make_no_room() -> None:
    cluster = Cluster()
    cluster.node("n0", 4)
    cluster.gang("old", 4, minimum=1, on=["n0"] * 4)
    cluster.gang("new", 2)
    session = opened(cluster)
    victims = list(session.jobs["old"].tasks.values())
    for allowed, is_short in ((0.0, True), (1.0, True), (2.0, False)):
        bounds = Bounds(session, ask_of(session, "new"), session.nodes, lambda *_, most=allowed: most, SlotCache())
        assert bounds.are_short(victims) is is_short
        assert bounds.loses_too_much(victims[:2], victims) is is_short
    unlimited = Bounds(session, ask_of(session, "new"), session.nodes, None, SlotCache())
    assert not unlimited.loses_too_much(victims, victims)


def test_victims_that_share_gpus_prove_nothing_about_losses() -> None:
    cluster = Cluster()
    cluster.node("n0", 2)
    cluster.gang("whole", 1, 1, on=["n0"])
    cluster.gang("part", 0, group={"min_member": 1})
    cluster.pod("part", 0, 0.5, on="n0", labels={"runai-gpu-group": "a"})
    cluster.gang("new", 1, 1, kind="build")
    session = opened(cluster)
    bounds = Bounds(session, ask_of(session, "new"), session.nodes, lambda *_: 0.0, SlotCache())
    victims = {task.name: task for task in session.tasks.values()}
    assert bounds.loses_too_much([victims["whole-0"]], [victims["whole-0"]])
    assert not bounds.loses_too_much([victims["whole-0"]], [victims["whole-0"], victims["part-0"]])


def test_half_a_gpu_may_have_room_where_no_whole_one_is_idle() -> None:
    cluster = Cluster()
    cluster.node("n0", 1)
    cluster.pod("", 0, 0.5, on="n0", labels={"runai-gpu-group": "a"})
    cluster.gang("part", 1, 0.5)
    cluster.gang("whole", 1, 1)
    session = opened(cluster)
    short = {}
    for name in ("part", "whole"):
        short[name] = Bounds(session, ask_of(session, name), session.nodes, None, SlotCache()).are_short([])
    assert short == {"part": False, "whole": True}


def test_cordoned_nodes_give_no_room() -> None:
    cluster = Cluster()
    cluster.node("n0", 4, cordoned=True)
    cluster.gang("new")
    session = opened(cluster)
    assert Bounds(session, ask_of(session, "new"), session.nodes, None, SlotCache()).are_short([])


# Budgets


def _contest() -> Cluster:
    """Three waiting gangs that would each find a victim."""
    cluster = Cluster()
    for index in range(3):
        cluster.node(f"n{index}", 1)
        cluster.gang(f"old-{index}", on=[f"n{index}"])
        cluster.gang(f"new-{index}", kind="build", age=500 - index)
    return cluster


def _budgets(cluster: Cluster, **limits: float) -> Cluster:
    cluster.config = replace(cluster.config, search_budgets={k.replace("__", "."): v for k, v in limits.items()})
    return cluster


def _hits(cluster: Cluster) -> dict[str, str]:
    result = cluster.run("allocate", "preempt")
    return {gang.name: gang.budget_hit for gang in result.gangs if gang.name.startswith("new")}


def test_trial_costs_by_pods_times_nodes_and_by_waiting_gangs() -> None:
    base = trial_seconds(pods=0, nodes=0, waiting=0)
    assert trial_seconds(pods=10, nodes=1000, waiting=0) - base == pytest.approx(0.021)
    assert trial_seconds(pods=0, nodes=1000, waiting=100) - base == pytest.approx(0.0012)


def test_gangs_that_an_action_has_no_time_for_say_so() -> None:
    cluster = _budgets(_contest(), maxActionSearchDuration__preempt=1e-9)
    assert _hits(cluster) == {"new-0": "preempt", "new-1": "preempt", "new-2": "preempt"}


def test_time_left_after_the_first_gang_ends_the_action_for_the_others() -> None:
    cluster = _budgets(_contest(), maxActionSearchDuration__default=1.2e-3)
    result = cluster.run("allocate", "preempt")
    assert outcome(result, "new-0") == "pipelined"
    assert [gang_of(result, f"new-{index}").budget_hit for index in (1, 2)] == ["preempt", "preempt"]


def test_generator_without_time_is_named_where_no_other_finds_victims() -> None:
    short = {"maxGeneratorSearchDuration__default": 1e-9}
    assert _hits(_budgets(_contest(), **short)) == dict.fromkeys(("new-0", "new-1", "new-2"), "NodeLocalGreedy")


def test_no_limit_is_no_limit_and_the_least_time_of_a_gang_holds() -> None:
    endless = _budgets(_contest(), maxActionSearchDuration__preempt=0, maxJobSearchDuration=0)
    assert set(_hits(endless).values()) == {""}
    least = _budgets(_contest(), maxJobSearchDuration=1e-9, minJobSearchDuration=60)
    assert set(_hits(least).values()) == {""}


# The search itself


def _solver(session: Session, name: str) -> JobSolver:
    means = Means(ActionBudget({}, "preempt"), Capacities(session), SlotCache())
    means.capacities.refresh()
    ground = _ground(session)
    return JobSolver(
        session,
        session.jobs[name],
        means=means,
        validator=lambda _: True,
        victims=ground.victims,
        candidates=lambda: [job for job in session.jobs.values() if job.key.startswith("old")],
        limit_for=lambda _: None,
    )


@pytest.mark.parametrize("shortcuts", [True, False])
def test_search_takes_back_all_but_its_solution(*, shortcuts: bool) -> None:
    session = _row([["n0", "n0"], ["n1", "n1"], ["n2", "n2"]])
    session.shortcuts = shortcuts
    found = _solver(session, "new").solve()
    assert found.end is End.SOLVED
    assert found.statement is not None
    assert {task.name for task in found.statement.evicted()} == {"old-2-0", "old-2-1"}
    found.statement.discard()
    assert all(task.status is task.start_status for task in session.tasks.values())


def test_gang_whose_step_is_empty_has_nothing_to_search_for() -> None:
    cluster = Cluster()
    cluster.node("n0", 1)
    cluster.gang("old", on=["n0"])
    session = opened(cluster)
    assert _solver(session, "old").solve().end is End.EXHAUSTED


def test_pods_outside_the_shard_are_no_victims() -> None:
    """A gang with a pod on a node of another shard cannot be taken: its pod frees nothing here."""
    cluster = Cluster()
    cluster.node("n0", 1)
    cluster.gang("old", 2, on=["n0", "elsewhere"])
    cluster.gang("new", kind="build")
    assert outcome(cluster.run("allocate", "preempt"), "new") == "unschedulable"


@pytest.mark.parametrize("possible", range(10))
def test_the_most_pods_that_can_be_helped_are_found_exactly(possible: int, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    cluster.node("n0", 9)
    cluster.gang("new", 9)
    solver = _solver(opened(cluster), "new")
    tried: list[int] = []

    def helps(_: object, tasks: Sequence[object]) -> bool:
        tried.append(len(tasks))
        return len(tasks) <= possible

    monkeypatch.setattr(solver, "_try", helps)
    search = _Search(multi_node_gang, ActionBudget({}, "preempt").for_job())
    tasks = list(solver._job.tasks.values())
    assert solver._most_solvable(search, tasks) == possible
    assert len(tried) == len(set(tried)) <= 7
