"""Every layer with its counts: of graphs that Grove carries out or Dynamo itself, and of sets of their own."""

from __future__ import annotations

from gangdash.engine.chain import Chain
from gangdash.engine.chain.ladder import Layer, gangs_of, ladder_of, leads
from tests.chain import world as w

READ = (*w.ALL_READ, "ReplicaSet")


def _layers(chain: Chain, component: str) -> dict[str, Layer]:
    top = chain.tops()[0]
    rung = next(rung for rung in ladder_of(chain, top) if rung.name == component)
    return {layer.kind: layer for layer in rung.layers}


def test_graph_that_dynamo_carries_out_itself() -> None:
    top = w.graph(notes={"nvidia.com/enable-grove": "false"})
    own = w.thing("nvidia.com/v1beta1", "DynamoComponentDeployment", "llm-decode", owner=top)
    own["spec"] = {"name": "Decode", "replicas": 2}
    other = w.thing("nvidia.com/v1beta1", "DynamoComponentDeployment", "llm-front", owner=top, spec={"name": "Front"})
    deployed = w.deployment("llm-decode", "team", owner=own)
    copies = w.thing("apps/v1", "ReplicaSet", "llm-decode-1", owner=deployed, spec={"replicas": 2})
    pods = [w.pod(copies, f"llm-decode-1-{i}", gang="", node="n1" if i else "", ready=bool(i)) for i in (0, 1)]
    chain = Chain(w.snapshot(top, own, other, deployed, copies, *pods, read=READ))
    layers = _layers(chain, "Decode")

    assert list(layers) == ["DynamoGraphDeployment", "DynamoComponentDeployment", "Deployment", "Pod"]
    assert layers["Deployment"].ready == 1
    assert (layers["Pod"].wanted, layers["Pod"].exist, layers["Pod"].placed, layers["Pod"].ready) == (2, 2, 1, 1)


def test_component_of_which_nothing_was_made() -> None:
    chain = Chain(w.snapshot(w.graph()))

    assert list(_layers(chain, "Decode")) == ["DynamoGraphDeployment"]


def test_set_of_its_own_is_laid_out_by_its_parts() -> None:
    groups = ({"name": "workers", "cliqueNames": ["decode"], "replicas": 2},)
    under = w.clique_set(cliques=("decode", "front"), groups=groups)
    group = w.thing("grove.io/v1alpha1", "PodCliqueScalingGroup", "llm-0-workers", owner=under)
    group["spec"] = {"replicas": 2, "cliqueNames": ["decode"]}
    group["status"] = {"replicas": 2, "scheduledReplicas": 1, "availableReplicas": 0}
    label = {"grove.io/podcliquescalinggroup": "llm-0-workers"}
    cliques = [w.clique(group, f"llm-0-workers-{i}-decode", replicas=1, labels=dict(label)) for i in (0, 1)]
    front = w.clique(under, "llm-0-front", replicas=1)
    chain = Chain(w.snapshot(under, group, *cliques, front))
    workers, alone = _layers(chain, "workers"), _layers(chain, "front")

    assert [rung.name for rung in ladder_of(chain, chain.tops()[0])] == ["workers", "front"]
    assert (workers["PodCliqueScalingGroup"].wanted, workers["PodCliqueScalingGroup"].placed) == (2, 1)
    assert workers["PodClique"].names == ("llm-0-workers-0-decode", "llm-0-workers-1-decode")
    assert workers["PodClique"].wanted == 2
    assert alone["PodClique"].names == ("llm-0-front",)
    assert "PodCliqueScalingGroup" not in alone


def test_status_names_a_component_where_no_label_does() -> None:
    top = w.graph()
    top["status"]["components"] = {"decode": {"componentKind": "PodClique", "componentNames": ["odd-name"]}}
    under = w.clique_set(top)
    chain = Chain(w.snapshot(top, under, w.clique(under, "odd-name")))

    assert _layers(chain, "Decode")["PodClique"].names == ("odd-name",)


def test_label_of_a_component_counts_whatever_its_case() -> None:
    top = w.graph()
    under = w.clique_set(top)
    mine = w.clique(under, "a", labels={"nvidia.com/dynamo-component": "DECODE"})
    other = w.clique(under, "llm-0-decode", labels={"nvidia.com/dynamo-component": "Frontend"})
    chain = Chain(w.snapshot(top, under, mine, other))

    assert _layers(chain, "Decode")["PodClique"].names == ("a",)


def test_count_that_one_of_several_does_not_state_is_unknown() -> None:
    top = w.graph()
    under = w.clique_set(top, replicas=2)
    cliques = [w.clique(under, f"llm-{i}-decode") for i in (0, 1)]
    cliques[0]["status"] = {"readyReplicas": 2}
    chain = Chain(w.snapshot(top, under, *cliques))
    layer = _layers(chain, "Decode")["PodClique"]

    assert (layer.wanted, layer.ready) == (4, None)


def test_gangs_say_what_they_wait_for() -> None:
    under = w.clique_set()
    made = w.clique(under)
    chain = Chain(w.snapshot(under, made, w.gang(under, initialized="False"), w.pod(made, gates=(w.GATE,)),
                             w.pod(made, "llm-0-decode-1", gates=(w.GATE,))))  # fmt: skip
    found = gangs_of(chain, chain.tops()[0])

    assert [(gang.podgang, gang.stage, gang.podgroups) for gang in found] == [("llm-0", "S9", ())]


def test_scaling_group_leads_to_the_gangs_of_its_cliques() -> None:
    under = w.clique_set(groups=({"name": "w", "cliqueNames": ["decode"]},))
    group = w.thing("grove.io/v1alpha1", "PodCliqueScalingGroup", "llm-0-w", owner=under)
    made = w.clique(group, "llm-0-w-0-decode")
    tied = w.gang(under, cliques=("llm-0-w-0-decode",))
    found = leads(Chain(w.snapshot(under, group, made, tied, w.podgroup(tied))))

    assert found["PodCliqueScalingGroup", "team", "llm-0-w", "PodCliqueScalingGroup-llm-0-w"] == {"pg-llm-0"}
