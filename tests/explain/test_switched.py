"""What configuration, versions and moments take from an answer: actions, search time, known faults, stale objects."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import gangdash.replay
from gangdash.documents import ExplanationDocument
from gangdash.documents.compose import explanation_document
from gangdash.engine.explain import explain_in
from gangdash.engine.explain.admission import feature_off
from gangdash.engine.explain.context import Context
from gangdash.engine.model.cluster import GangHistory
from gangdash.engine.model.config import DEFAULT_ACTIONS, SchedulerConfig, Shard
from gangdash.engine.model.cycle import GangOutcome, PodOutcome
from gangdash.engine.model.meta import Meta, OwnerRef
from gangdash.engine.model.observed import ObservedObject
from gangdash.engine.model.podgroup import TopologyConstraint
from gangdash.engine.verdict import Explanation, ReasonCode
from gangdash.engine.whatif import run_all
from tests.engine.builders import NOW, RACK, Cluster
from tests.explain.helpers import event, explain, said


def owed() -> Cluster:
    """Return a cluster in which reclaim gives the gang what another queue holds above its share."""
    cluster = Cluster()
    for name in ("n1", "n2"):
        cluster.node(name, 8)
    cluster.queue("top")
    cluster.queue("a", 0, -1, parent="top")
    cluster.queue("q", 16, -1, parent="top")
    for name in ("n1", "n2"):
        cluster.gang(f"hold-{name}", 1, 8, queue="a", on=[name])
    cluster.gang("g", 1, 8, queue="q")
    return cluster


def test_action_that_is_not_configured_is_named() -> None:
    cluster = owed()
    assert said(explain(cluster)) == ("WILL_START", "WAITS_FOR_EVICTION")
    cluster.config = SchedulerConfig(actions=("allocate", "stalegangeviction"))
    entry = explain(cluster)
    assert said(entry) == ("CONFIG", "FEATURE_OFF")
    assert entry.sentence == (
        "Shard default does not run the action reclaim; with it the scheduler would start this gang by reclaim."
    )
    assert (entry.certainty, entry.binding[0].id) == ("proved", "feature.enabled")


def test_action_that_would_not_help_is_not_named() -> None:
    cluster = owed()
    cluster.config = SchedulerConfig(actions=tuple(a for a in DEFAULT_ACTIONS if a != "preempt"))
    assert said(explain(cluster)) == ("WILL_START", "WAITS_FOR_EVICTION")
    full = Cluster()
    full.node("n1", 8)
    full.gang("hold", 1, 8, kind="build", on=["n1"])
    full.gang("g", 1, 8)
    full.config = SchedulerConfig(actions=("allocate",))
    assert said(explain(full)) == ("NO_FIT", "GPUS_BUSY")


def test_search_that_its_budget_ends_is_told_and_not_called_proved() -> None:
    cluster = owed()
    cluster.config = SchedulerConfig(search_budgets={"maxJobSearchDuration": 0.0003})
    entry = explain(cluster)
    assert said(entry) == ("STUCK", "SEARCH_BUDGET")
    assert entry.certainty == "unproven"
    assert "search budget of shard default" in entry.sentence


def test_nothing_is_proved_by_a_search_that_was_cut_short() -> None:
    cluster = owed()
    cluster.config = SchedulerConfig(search_budgets={"maxJobSearchDuration": 1e-9})
    assert explain(cluster).certainty == "unproven"


REFUSAL = (
    'admission webhook "validate.kai.example" denied the request: attempting to create a pod team/g-1 with gpu sharing '
    "request, while GPU sharing is disabled"
)


def test_refusal_for_a_feature_that_is_off_names_the_feature() -> None:
    cluster = Cluster()
    cluster.node("n1", 8)
    made = cluster.gang("g", 1, minimum=2)
    owner = OwnerRef("batch/v1", "Job", "work", "job-uid", controller=True)
    cluster.podgroups[-1] = replace(made, meta=replace(made.meta, owners=(owner,)))
    cluster.pods[-1] = replace(cluster.pods[-1], meta=replace(cluster.pods[-1].meta, owners=(owner,)))
    job = ObservedObject("batch/v1", "Job", Meta("work", "team", uid="job-uid"), {"spec.parallelism": 2})
    cluster.extra["objects"] = {"Job": (job,)}
    cluster.extra["events"] = (event("FailedCreate", REFUSAL, kind="Job", name="work"),)
    entry = explain(cluster)
    assert said(entry) == ("CONFIG", "FEATURE_OFF")
    assert entry.sentence.startswith("validate.kai.example refuses its pods because GPU sharing is off there")


@pytest.mark.parametrize(
    "text, feature",
    [
        (REFUSAL, "GPU sharing"),
        (
            "the scheduler must be an enabled backend; this scheduler is not enabled in OperatorConfiguration",
            "scheduler",
        ),
        ("requests.cpu must equal limits.cpu", ""),
        ("", ""),
    ],
)
def test_features_are_read_from_refusals(text: str, feature: str) -> None:
    assert feature_off(text) == feature


# Known faults


def overdue(cluster: Cluster) -> None:
    """Let the last gang have been placeable for ten minutes."""
    uid = cluster.podgroups[-1].meta.uid
    cluster.extra["history"] = {uid: GangHistory(placeable_since=NOW - 600)}


def run_by(cluster: Cluster, version: str) -> None:
    cluster.extra["shards"] = (Shard(config=cluster.config, version=version),)


@pytest.mark.parametrize("version, is_told", [("v0.16.3", True), ("v0.17.0", False), ("v1.2", False), ("", False)])
def test_fault_of_the_running_version_stands_beside_the_verdict(version: str, *, is_told: bool) -> None:
    cluster = owed()
    overdue(cluster)
    run_by(cluster, version)
    entry = explain(cluster)
    assert said(entry) == ("STUCK", "PLACEABLE_NOT_PLACED")
    told = [other.sentence for other in entry.also if other.code is ReasonCode.SCHEDULER_DEFECT]
    assert bool(told) == is_told
    if is_told:
        assert told[0].startswith("KAI v0.16.3 gives up reclaim when a queue")


def test_node_with_mig_profiles_at_zero_is_a_sign_before_the_fix() -> None:
    cluster = Cluster()
    cluster.node("n1", 8, resources={"nvidia.com/mig-1g.24gb": 0})
    cluster.gang("g", 1, 8)
    overdue(cluster)
    run_by(cluster, "0.13.4")
    told = [other for other in explain(cluster).also if other.code is ReasonCode.SCHEDULER_DEFECT]
    assert "mended in v0.14" in told[0].sentence


def test_gang_that_differs_in_topology_alone_is_a_sign_before_the_fix() -> None:
    cluster = Cluster()
    cluster.racks({"r1": {"n1": 8, "n2": 8}})
    rack = TopologyConstraint("topo", required_level=RACK)
    cluster.gang("other", 1, 16, topology=rack, age=900)
    cluster.gang("g", 1, 8)
    overdue(cluster)
    run_by(cluster, "v0.10.2")
    told = [other for other in explain(cluster).also if other.code is ReasonCode.SCHEDULER_DEFECT]
    assert "differ in topology alone" in told[0].sentence


# Moments


def test_objects_from_after_the_moment_get_no_verdict() -> None:
    cluster = Cluster()
    cluster.node("n1", 8)
    cluster.gang("g", 1, 8, age=-7200)
    entry = explain(cluster)
    assert said(entry) == ("NO_VERDICT", "STALE_DATA")
    assert "was made 2 h after the moment" in entry.sentence or "was made 120 min after" in entry.sentence


def test_clocks_that_differ_a_little_are_no_other_moment() -> None:
    cluster = Cluster()
    cluster.node("n1", 8)
    cluster.gang("g", 1, 8, age=-60)
    assert said(explain(cluster)) == ("WILL_START", "FITS_NOW")


def test_gang_that_is_placed_and_moved_on_within_the_cycle_is_placed() -> None:
    cluster = Cluster()
    cluster.node("n1", 8)
    cluster.gang("g", 1, 8)
    snapshot = cluster.snapshot()
    (cycle,) = run_all(snapshot)
    moved = tuple(replace(pod, outcome=PodOutcome.MOVED) for pod in cycle.gangs[0].pods)
    gang = replace(cycle.gangs[0], outcome=GangOutcome.MOVED, pods=moved, action="consolidation")
    (told,) = explain_in(Context(snapshot, [replace(cycle, gangs=(gang,))]))
    assert told.finding.code is ReasonCode.FITS_NOW
    assert told.finding.facts["where"] == ("n1",)


def test_words_that_fail_cost_one_gang_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    cluster.node("n1", 8)
    cluster.gang("a", 1, 9)
    cluster.gang("b", 1, 8)

    def broken(item: Explanation, *rest: Any) -> ExplanationDocument:
        if item.finding.code is ReasonCode.NODE_TOO_SMALL:
            raise KeyError("no such form")
        return explanation_document(item, *rest)

    monkeypatch.setattr(gangdash.replay, "explanation_document", broken)
    told = gangdash.replay.replay(cluster.snapshot()).explanations
    assert [(entry.gang.name, str(entry.code)) for entry in told] == [("a", "ENGINE_FAULT"), ("b", "FITS_NOW")]
    assert "no such form" not in told[0].sentence
