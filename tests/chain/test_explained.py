"""What the chain knows reaches the explanation: verdict, code, stage, sentence and the owner on top."""

from __future__ import annotations

from typing import Any

import pytest

from gangdash.documents import ExplanationDocument
from gangdash.replay import replay
from tests.chain import world as w
from tests.chain.test_standing import _gated, _scaled


def _explained(*objects: w.Object, name: str = "team/llm", **more: Any) -> ExplanationDocument:
    queues = [
        w.thing("scheduling.run.ai/v2", "Queue", "top", namespace="", spec={"resources": _unlimited()}),
        w.thing("scheduling.run.ai/v2", "Queue", "q", namespace="", spec={"parentQueue": "top"}),
    ]
    queues[1]["spec"]["resources"] = _unlimited()
    nodes = [_node(f"n{i}") for i in (1, 2)]
    found = replay(w.snapshot(*queues, *nodes, *objects, **more), gang=name).explanations
    assert len(found) == 1, [item.gang.name for item in found]
    return found[0]


def _unlimited() -> w.Object:
    return {name: {"quota": -1, "limit": -1, "overQuotaWeight": 1} for name in ("cpu", "memory", "gpu")}


def _node(name: str) -> w.Object:
    found = w.thing("v1", "Node", name, namespace="")
    amounts = {"cpu": "8", "memory": "64Gi", "pods": "110"}
    found["status"] = {"allocatable": amounts, "capacity": amounts, "conditions": [w.condition("Ready", "True")]}
    return found


def _said(item: ExplanationDocument) -> tuple[str, str, str | None]:
    return item.verdict, item.code, item.stage


def test_gang_names_the_graph_that_it_came_from() -> None:
    found = _explained(*w.served(), name="team/pg-llm-0")

    assert found.gang.owner == "DynamoGraphDeployment/team/llm"
    assert found.verdict == "HEALTHY"


def test_graph_that_nobody_looked_at_is_gated_then_stuck() -> None:
    young, old = _explained(w.graph(state="", age=20)), _explained(w.graph(state="", age=600))

    assert _said(young) == ("GATED", "UPSTREAM_STAGE", "S2")
    assert _said(old) == ("STUCK", "CONTROLLER_SILENT", "S2")
    assert old.gang.kind == "DynamoGraphDeployment"
    assert "Dynamo's operator has not acted" in old.sentence
    assert old.waiting.helps == "no"


def test_operator_that_is_down_is_named_with_what_to_do() -> None:
    top = w.graph()
    down = w.deployment("grove-operator", "grove-system", ready=0)
    found = _explained(top, w.clique_set(top), down)

    assert _said(found) == ("STUCK", "CONTROLLER_SILENT", "S5")
    assert "Grove's operator is down (0 of 1 replicas are ready)" in found.sentence
    assert [fix.change["kind"] for fix in found.fixes] == ["restart_component"]


def test_operators_own_error_is_repeated_not_called_silence() -> None:
    text = "queue 'dynamo' not found in cluster"
    found = _explained(w.graph(ready=w.condition("Ready", "False", "failed_to_reconcile_the_resources", text)))

    assert _said(found) == ("GATED", "UPSTREAM_STAGE", "S3")
    assert text in found.sentence


def test_kind_that_is_not_installed_is_configuration() -> None:
    top = w.graph(notes={"nvidia.com/workload-provider": "grove"})
    found = _explained(top, not_read={"PodCliqueSet": "not served"})

    assert _said(found) == ("CONFIG", "KIND_NOT_SERVED", "S0")


def test_missing_pods_of_a_set_are_told_before_any_podgroup() -> None:
    under = w.clique_set()
    made = w.clique(under)
    failed = w.event(made, "PodCreateFailed", "Error creating pod : exceeded quota: max-gpus")
    found = _explained(under, made, w.gang(under), failed)

    assert _said(found) == ("GATED", "UPSTREAM_STAGE", "S8")
    assert "exceeded quota: max-gpus" in found.sentence


def test_gates_of_pods_without_a_podgroup_come_before_its_absence() -> None:
    assert _said(_explained(*_gated())) == ("GATED", "SCHEDULING_GATE", "S13")
    foreign = _explained(*_gated(gates=("kueue.x-k8s.io/admission",)))
    assert _said(foreign) == ("GATED", "SCHEDULING_GATE", "S11")
    assert "kueue.x-k8s.io/admission" in foreign.sentence


def test_scaled_gang_without_a_podgroup_waits_for_its_base() -> None:
    found = _explained(*_scaled(base_nodes=1))

    assert _said(found) == ("GATED", "WAITS_FOR_BASE_GANG", "S10")
    assert "llm-0 is not placed" in found.sentence


def test_ungated_pods_without_a_podgroup_are_the_groupers() -> None:
    objects = w.served(nodes=("", ""), ready=False, group=False)

    assert _said(_explained(*objects)) == ("CONFIG", "NO_PODGROUP", "S15")


def test_extra_replicas_that_wait_are_no_outage() -> None:
    objects = _scaled(base_nodes=2)
    objects.append(w.podgroup(objects[3], "pg-x", spec={"queue": "q"}))
    for item in objects:
        if item["kind"] == "Pod" and "extra" in item["metadata"]["name"]:
            item["metadata"]["annotations"]["pod-group-name"] = "pg-x"
            del item["spec"]["schedulingGates"]
            item["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "99"}}
    found = _explained(*objects, name="team/pg-x")

    assert (found.verdict, found.stage) == ("NO_FIT", "S26")


def test_gang_that_grove_took_down_says_so() -> None:
    objects = [item for item in w.served() if item["kind"] != "Pod"]
    deleted = w.event(objects[1], "PodCliqueSetReplicaDeleteSuccessful", "PodCliqueSet replica 0 deleted")
    found = _explained(*objects, deleted, name="team/pg-llm-0")

    assert _said(found) == ("GATED", "UPSTREAM_STAGE", "S24")
    assert "PodCliqueSet replica 0 deleted" in found.sentence


def test_nothing_is_told_of_a_model_that_serves() -> None:
    snapshot = w.snapshot(*w.served())

    assert [item for item in replay(snapshot).explanations if item.gang.kind != "PodGroup"] == []


def _stateful(*, policy: str, gpus: str = "1") -> list[w.Object]:
    owner = w.thing("apps/v1", "StatefulSet", "fn", spec={"replicas": 3, "podManagementPolicy": policy})
    group = w.podgroup(owner, "pg-fn", spec={"minMember": 1})
    pods = [w.pod(owner, f"fn-{i}", gang="", group="pg-fn", node="n1" if i == 0 else "") for i in range(3)]
    for item in pods:
        item["spec"]["containers"][0]["resources"] = {"requests": {"nvidia.com/gpu": gpus, "cpu": "99"}}
    return [owner, group, *pods]


def test_stateful_set_meant_as_a_gang_is_not_enforced() -> None:
    """The pod grouper gives it a minimum of 1 whatever its replicas."""
    read = (*w.ALL_READ, "StatefulSet")
    found = _explained(*_stateful(policy="Parallel"), name="team/pg-fn", read=read)
    alone = _explained(*_stateful(policy="OrderedReady"), name="team/pg-fn", read=read)

    assert _said(found) == ("PARTIAL", "GANG_NOT_ENFORCED", "S19")
    assert "1 of" in found.sentence
    assert "3" in found.sentence
    assert alone.verdict == "NO_FIT"


@pytest.mark.parametrize("kind", sorted(set(w.ALL_READ) - {"Pod", "Node", "PodGroup", "Queue"}))
def test_kind_that_could_not_be_read_leads_to_no_conclusion(kind: str) -> None:
    """A model that serves stays one, whatever part of its chain is hidden."""
    objects = [item for item in w.served() if item["kind"] != kind]
    found = replay(w.snapshot(*objects, not_read={kind: "403"}), include_all=True).explanations

    assert {(item.gang.kind, item.verdict) for item in found} == {("PodGroup", "HEALTHY")}


@pytest.mark.parametrize("kind", ["PodClique", "PodCliqueScalingGroup", "PodGang", "PodCliqueSet", "PodGroup", "Pod"])
def test_set_is_not_called_stuck_for_what_was_not_read(kind: str) -> None:
    objects = [item for item in (*w.served(group=False),) if item["kind"] not in {kind, "Pod"}]
    found = replay(w.snapshot(*objects, not_read={kind: "403"})).explanations

    stages = {item.stage for item in found if item.gang.kind != "PodGroup"}
    assert stages <= {"S8"}, "only missing pods of cliques that were read"
    assert kind != "Pod" or not stages


def _epochs(*, depends: str) -> list[w.Object]:
    """Return a tail gang whose pods are gated and, by its epoch, wait for another one."""
    replica = {"grove.io/podcliqueset-replica-index": "0"}
    under = w.clique_set(cliques=("decode", "extra"))
    made, more = w.clique(under), w.clique(under, "llm-0-extra", gang="llm-0-2")
    anchor = w.gang(under, "llm-0", labels=replica | {"grove.io/epoch": "1"})
    tail = w.gang(under, "llm-0-2", cliques=("llm-0-extra",), labels=replica | {"grove.io/epoch": "2"})
    entries = [{"epoch": "1", "role": "Anchor"}, {"epoch": "2", "dependsOn": [depends]}]
    epochs = w.thing("grove.io/v1alpha1", "PodGangMap", "llm-0", owner=under, spec={"entries": entries})
    pods = [w.pod(made, f"llm-0-decode-{i}", group="llm-0") for i in (0, 1)]
    pods += [w.pod(more, f"llm-0-extra-{i}", gang="llm-0-2", group="llm-0-2", gates=(w.GATE,)) for i in (0, 1)]
    return [under, made, more, anchor, tail, epochs, w.podgroup(anchor, "llm-0"), w.podgroup(tail, "llm-0-2"), *pods]


def test_gang_of_an_epoch_waits_for_the_epoch_it_depends_on() -> None:
    waits = _explained(*_epochs(depends="1"), name="team/llm-0-2")
    lost = _explained(*_epochs(depends="9"), name="team/llm-0-2")

    assert _said(waits) == ("GATED", "WAITS_FOR_BASE_GANG", "S10")
    assert "llm-0" in waits.sentence
    assert _said(lost) == ("GATED", "WAITS_FOR_BASE_GANG", "S12"), "scaled from zero: nothing will ever lift the gate"


def test_missing_clique_of_a_gang_with_a_podgroup_is_its_operators() -> None:
    under = w.clique_set(cliques=("decode", "front"))
    tied = w.gang(under, cliques=("llm-0-decode", "llm-0-front"))
    group = w.podgroup(tied, spec={"minMember": 4})
    made = w.clique(under)
    pods = [w.pod(made, f"llm-0-decode-{i}", group="pg-llm-0", gates=(w.GATE,)) for i in (0, 1)]
    found = _explained(under, tied, group, made, *pods, name="team/pg-llm-0")

    assert _said(found) == ("STUCK", "CONTROLLER_SILENT", "S6")
    assert "1 of 2 PodCliques exist" in found.sentence
