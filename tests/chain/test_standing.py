"""The first stage not passed, one small cluster a stage, with the object that proves it and who owes the step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gangdash.engine.chain import Chain, Standing, gang_standing_of, remarks_of, standing_of
from gangdash.engine.chain.stages import STAGES
from gangdash.engine.model.deadlines import Deadlines
from tests.chain import world as w


def _standing(*objects: w.Object, **more: Any) -> Standing | None:
    chain = Chain(w.snapshot(*objects, **more))
    return standing_of(chain, chain.tops()[0])


def _found(*objects: w.Object, **more: Any) -> Standing:
    found = _standing(*objects, **more)
    assert found is not None
    return found


def _remarks(*objects: w.Object, **more: Any) -> list[Standing]:
    chain = Chain(w.snapshot(*objects, **more))
    return remarks_of(chain, chain.tops()[0])


def test_stages_are_whole() -> None:
    assert list(STAGES) == [f"S{number}" for number in range(32)]


def test_served_model_stands_nowhere() -> None:
    assert _standing(*w.served()) is None
    assert _remarks(*w.served()) == []


@pytest.mark.parametrize("age,overdue", [(30, False), (90, True)])
def test_graph_without_a_status_is_not_looked_at(age: int, overdue: bool) -> None:
    down = w.deployment("dynamo-operator-controller-manager", "dynamo-system", ready=0)
    found = _found(w.graph(state="", age=age), down)

    assert (found.stage, found.controller, found.overdue) == ("S2", "Dynamo's operator", overdue)
    assert found.controller_state == "0 of 1 replicas are ready"
    assert found.since == w.AS_OF - age


def test_deadlines_come_with_the_snapshot() -> None:
    snapshot = replace(w.snapshot(w.graph(state="", age=90)), deadlines=Deadlines(first_status=120))
    chain = Chain(snapshot)
    found = standing_of(chain, chain.tops()[0])

    assert found is not None
    assert not found.overdue


def test_operator_that_gave_up_says_why() -> None:
    text = "queue 'dynamo' not found in cluster. Ensure the queue exists before using kai-scheduler"
    found = _found(w.graph(ready=w.condition("Ready", "False", "failed_to_reconcile_the_resources", text)))

    assert (found.stage, found.problem, found.field) == ("S3", text, "status.conditions[Ready]")


def test_graph_scaled_to_nothing_waits_by_design() -> None:
    found = _found(w.graph(components=[{"name": "Decode", "replicas": 0}]))

    assert (found.stage, found.overdue) == ("S4", False)


def test_grove_that_is_not_installed_is_named() -> None:
    top = w.graph(notes={"nvidia.com/workload-provider": "grove"})
    gone = {"PodCliqueSet": "not served"}

    assert _found(top, not_read=gone).stage == "S0"
    plain = w.graph()
    own = w.thing("nvidia.com/v1beta1", "DynamoComponentDeployment", "llm-decode", owner=plain)
    assert _standing(plain, own, not_read=gone) is None, "without Grove the operator takes Deployments"
    assert _standing(top, not_read={"PodCliqueSet": "403"}) is None, "nothing is concluded from what was not read"


def test_graph_without_a_set_waits_for_its_operator() -> None:
    found = _found(w.graph())

    assert (found.stage, found.wanted, found.overdue) == ("S3", "PodCliqueSet", True)


def test_set_without_children_is_not_taken_up() -> None:
    top = w.graph()
    found = _found(top, w.clique_set(top), w.deployment("grove-operator", "grove-system", ready=0))

    assert (found.stage, found.proof, found.controller) == ("S5", "PodCliqueSet/team/llm", "Grove's operator")
    assert found.controller_state


def test_migration_that_never_ends_is_overdue() -> None:
    under = w.clique_set(status={"conditions": [w.condition("PodGangMigrationInProgress", "True", age=400)]})
    found = _found(under, w.clique(under))

    assert (found.stage, found.overdue) == ("S7", True)


def test_missing_children_are_counted_with_the_error() -> None:
    error = {"code": "ERR_SYNC_PODCLIQUE", "description": "no such secret", "observedAt": w.ago(30)}
    under = w.clique_set(cliques=("decode", "front"), status={"lastErrors": [error]})
    found = _found(under, w.clique(under))

    assert (found.stage, found.wanted, found.found) == ("S6", "2", "1")
    assert "ERR_SYNC_PODCLIQUE no such secret" in found.problem


def test_members_of_scaled_groups_are_counted_by_the_group_not_the_template() -> None:
    template = {"name": "w", "cliqueNames": ["decode"], "replicas": 1}
    under = w.clique_set(groups=(template,))
    group = w.thing("grove.io/v1alpha1", "PodCliqueScalingGroup", "llm-0-w", owner=under,
                    spec={"replicas": 2, "cliqueNames": ["decode"]})  # fmt: skip
    one = w.clique(group, "llm-0-w-0-decode", replicas=0)

    assert _found(under, group, one).problem == "1 of 2 PodCliques exist"
    assert _standing(under, group, one, w.clique(group, "llm-0-w-1-decode", replicas=0)) is None


def test_pods_that_are_not_created_name_their_clique_and_why() -> None:
    under = w.clique_set()
    made = w.clique(under)
    failed = w.event(made, "PodCreateFailed", "Error creating pod : exceeded quota: max-gpus")
    found = _found(under, made, w.gang(under), w.pod(made, gates=(w.GATE,)), failed)

    assert (found.stage, found.proof) == ("S8", "PodClique/team/llm-0-decode")
    assert found.problem == "1 of 2 pods exist: Error creating pod : exceeded quota: max-gpus"


def _gated(**bent: Any) -> list[w.Object]:
    under = w.clique_set()
    made = w.clique(under)
    pods = [w.pod(made, f"llm-0-decode-{i}", gates=bent.pop("gates", (w.GATE,)), **bent.get("pod", {})) for i in (0, 1)]
    return [under, made, w.gang(under, **bent.get("gang", {})), *pods]


def test_gate_of_another_owner_comes_first() -> None:
    found = _found(*_gated(gates=(w.GATE, "kueue.x-k8s.io/admission")))

    assert (found.stage, found.found) == ("S11", "kueue.x-k8s.io/admission")


def test_gang_that_is_not_whole_keeps_its_gate() -> None:
    assert _found(*_gated(gang={"initialized": "False"})).stage == "S9"
    short = _found(*_gated(gang={"listed": ("llm-0-decode-0",)}))
    assert (short.stage, short.problem) == ("S9", "does not list llm-0-decode-1")


def test_gang_that_lists_pods_of_before_is_a_race() -> None:
    assert _found(*_gated(gang={"listed": ("llm-0-decode-x", "llm-0-decode-y")})).stage == "S14"


def test_gate_that_is_due_is_late() -> None:
    found = _found(*_gated())

    assert (found.stage, found.overdue) == ("S13", True), "500 s are more than a resync"


def _scaled(*, base_nodes: int, exists: bool = True) -> list[w.Object]:
    under = w.clique_set(cliques=("decode", "extra"))
    made, more = w.clique(under), w.clique(under, "llm-0-extra", gang="llm-0-x")
    base = [w.gang(under), *(w.pod(made, f"llm-0-decode-{i}", node="n" * (i < base_nodes), group="pg-llm-0")
                             for i in (0, 1))]  # fmt: skip
    label = {"grove.io/base-podgang": "llm-0"}
    pods = [w.pod(more, f"llm-0-extra-{i}", gang="llm-0-x", gates=(w.GATE,), labels=dict(label)) for i in (0, 1)]
    scaled = w.gang(under, "llm-0-x", cliques=("llm-0-extra",))
    groups = [w.podgroup(base[0])] if exists else []
    return [under, made, more, scaled, *pods, *groups, *(base if exists else base[1:])]


def _scaled_standing(objects: list[w.Object]) -> Standing:
    chain = Chain(w.snapshot(*objects))
    gang = chain.object("PodGang", "team", "llm-0-x")
    assert gang is not None
    found = gang_standing_of(chain, gang)
    assert found is not None
    return found


def test_scaled_gang_waits_for_its_base_to_be_placed_not_ready() -> None:
    waits = _scaled_standing(_scaled(base_nodes=1))

    assert (waits.stage, waits.proof, waits.found, waits.wanted) == ("S10", "PodGang/team/llm-0", "1", "2")
    assert waits.controller == "KAI's scheduler", "Grove only takes the gate away after that"
    assert _scaled_standing(_scaled(base_nodes=2)).stage == "S13", "the base is placed, so the gate is due"


def test_gang_whose_base_does_not_exist_waits_for_ever() -> None:
    found = _scaled_standing(_scaled(base_nodes=0, exists=False))

    assert (found.stage, found.overdue) == ("S12", True)


def test_phase_pending_of_a_placed_gang_says_nothing() -> None:
    """PodGang stays Pending for ever, and PodClique counts gates that are long gone."""
    objects = w.served()
    objects[2]["status"] = {"scheduleGatedReplicas": 2, "scheduledReplicas": 0, "replicas": 2}
    objects[2]["status"]["conditions"] = [w.condition("MinAvailableBreached", "True", "InsufficientScheduledPods")]

    assert _standing(*objects) is None


def test_ungated_gang_without_a_podgroup_is_the_groupers() -> None:
    objects = w.served(nodes=("", ""), ready=False, group=False)
    failed = w.event(objects[3], "KAIBackendMappingFailed", "no KAI queue is configured")
    found = _found(*objects, failed)

    assert (found.stage, found.controller) == ("S15", "KAI's pod grouper")
    assert "no KAI queue is configured" in found.problem
    assert _standing(*objects, not_read={"PodGroup": "403"}) is None


def test_pods_that_are_being_deleted_do_not_count() -> None:
    under = w.clique_set()
    made = w.clique(under)
    going = w.pod(made, "llm-0-decode-1", node="n", group="pg-llm-0")
    going["metadata"]["deletionTimestamp"] = w.NOW
    tied = w.gang(under)
    found = _found(under, made, tied, w.podgroup(tied), w.pod(made, node="n", group="pg-llm-0"), going)

    assert (found.stage, found.found) == ("S8", "1 pods")


# Beside the first stage


def _stages(*objects: w.Object, **more: Any) -> list[tuple[str, str]]:
    return [(remark.stage, remark.proof) for remark in _remarks(*objects, **more)]


def test_each_pod_a_gang_of_its_own_is_wrong_grouping() -> None:
    objects = w.served(group=False)
    for item in objects[-2:]:
        name = f"pg-{item['metadata']['name']}"
        item["metadata"]["annotations"]["pod-group-name"] = name
        objects.append(w.podgroup(item, name, spec={"minMember": 1}))

    assert _stages(*objects) == [("S19", "PodGroup/team/pg-llm-0-decode-0")]


def test_replica_that_grove_deleted_is_told() -> None:
    objects = w.served()
    deleted = w.event(objects[1], "PodCliqueSetReplicaDeleteSuccessful", "PodCliqueSet replica 0 deleted")

    assert _stages(*objects, deleted) == [("S24", "PodCliqueSet/team/llm")]


def test_update_without_an_end_is_told_after_its_time() -> None:
    objects = w.served()
    objects[1]["status"] = {"updateProgress": {"updateStartedAt": w.ago(4000)}}
    assert _stages(*objects) == [("S25", "PodCliqueSet/team/llm")]
    objects[1]["status"]["updateProgress"]["updateEndedAt"] = w.ago(3000)
    assert _stages(*objects) == []


@pytest.mark.parametrize("status,told", [("False", False), ("True", True), ("Unknown", True)])
def test_condition_that_is_good_when_false(status: str, told: bool) -> None:
    objects = w.served()
    objects[1]["status"] = {"conditions": [w.condition("TopologyLevelsUnavailable", status, "x")]}

    assert bool(_stages(*objects)) is told


def test_topology_that_got_lost_on_the_way_is_told() -> None:
    objects = w.served()
    objects[1]["spec"]["template"]["topologyConstraint"] = {"topologyName": "t", "pack": {"required": "rack"}}
    assert _stages(*objects) == [("S29", "PodGroup/team/pg-llm-0")]
    objects[4]["spec"]["topologyConstraint"] = {"topology": "t", "requiredTopologyLevel": "rack"}
    assert _stages(*objects) == []


def test_nodes_that_are_one_machine_are_told() -> None:
    objects = w.served(nodes=("n1", "n1"))
    objects[0]["spec"]["components"] = [{"name": "Decode", "replicas": 1, "multinode": {"nodeCount": 2}}]
    for item in objects[-2:]:
        item["metadata"]["labels"] |= {
            "nvidia.com/dynamo-component": "Decode",
            "grove.io/podcliquescalinggroup": "llm-0-decode",
        }

    assert _stages(*objects) == [("S30", "Pod/team/llm-0-decode-0")]


def test_status_that_does_not_follow_is_told() -> None:
    objects = w.served()
    ready = w.condition("Ready", "False", "updating", age=500)
    objects[0]["status"] = {"state": "pending", "observedGeneration": 1, "conditions": [ready]}

    assert _stages(*objects) == [("S28", "DynamoGraphDeployment/team/llm")]


def test_worker_that_did_not_announce_itself_is_told() -> None:
    objects = w.served()
    for item in objects[-2:]:
        item["metadata"]["labels"] |= {
            "nvidia.com/dynamo-discovery-backend": "kubernetes",
            "nvidia.com/dynamo-component-type": "worker",
        }
    assert _stages(*objects) == [("S31", "Pod/team/llm-0-decode-0")]
    assert _stages(*objects, not_read={"DynamoWorkerMetadata": "403"}) == []


def test_two_podgroups_of_one_gang_are_told() -> None:
    """Half an upgrade: the pod grouper's PodGroup and Grove's own."""
    objects = w.served()
    objects.append(w.podgroup(objects[3], "llm-0"))

    assert _stages(*objects) == [("S19", "PodGang/team/llm-0")]


def test_what_a_graph_may_have_become_must_have_been_read() -> None:
    old = {"DynamoComponentDeployment": "403"}
    assert _standing(w.graph(), not_read=old) is None, "Dynamo may have carried it out itself"
    assert _standing(w.graph(), not_read={"PodCliqueSet": "403"}) is None
    without_grove = _found(w.graph(), not_read={"PodCliqueSet": "not served"})
    assert (without_grove.stage, without_grove.wanted) == ("S3", "DynamoComponentDeployment")


def test_domain_that_waits_for_pods_that_wait_for_it_is_a_deadlock() -> None:
    objects = _scaled(base_nodes=2)
    for item in objects:
        if item["kind"] == "Pod" and "decode" in item["metadata"]["name"]:
            item["spec"]["resourceClaims"] = [{"name": "channel", "resourceClaimTemplateName": "cd"}]
    spec = {"numNodes": 18, "channel": {"resourceClaimTemplate": {"name": "cd"}}}
    domain = w.thing("resource.nvidia.com/v1beta1", "ComputeDomain", "cd-a", spec=spec)
    found = _scaled_standing([*objects, domain])

    assert (found.stage, found.proof, found.wanted, found.found) == ("S14", "ComputeDomain/team/cd-a", "18", "1")
    domain["metadata"]["namespace"] = "other"
    assert _scaled_standing([*objects, domain]).stage == "S13"
