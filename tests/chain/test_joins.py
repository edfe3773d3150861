"""Objects are tied by uid, then owner, then label; what only looks alike is not."""

from __future__ import annotations

from typing import Any

from gangdash.engine.chain import Chain
from gangdash.engine.chain.components import components_of
from tests.chain import world as w


def _chain(*objects: w.Object, **more: Any) -> Chain:
    return Chain(w.snapshot(*objects, **more))


def _kinds(chain: Chain, group: str = "team/pg-llm-0") -> list[tuple[str, str]]:
    found = chain.podgroups[group]
    return [(link.kind, link.by) for link in chain.ancestry(found.meta, tuple(chain.pods))]


def test_podgroup_has_its_whole_ancestry() -> None:
    chain = _chain(*w.served())

    assert _kinds(chain) == [("PodGang", "owner"), ("PodCliqueSet", "owner"), ("DynamoGraphDeployment", "owner")]
    assert [top.ref for top in chain.tops()] == ["DynamoGraphDeployment/team/llm"]


def test_recreated_object_of_the_same_name_is_no_owner() -> None:
    objects = w.served()
    objects[1]["metadata"]["uid"] = "PodCliqueSet-of-today"
    chain = _chain(*objects)
    gang = chain.object("PodGang", "team", "llm-0")

    assert gang is not None
    assert chain.set_of(gang.meta) is None
    assert chain.of_set("PodClique", chain.objects("PodCliqueSet")[0]) == []


def test_object_of_another_namespace_is_no_owner() -> None:
    objects = w.served()
    for item in objects[:2]:
        item["metadata"]["namespace"] = "other"
    chain = _chain(*objects)

    assert chain.set_of(chain.objects("PodClique")[0].meta) is None


def test_labels_tell_of_levels_that_could_not_be_read() -> None:
    objects = w.served()
    for item in objects:
        item["metadata"]["labels"] |= {
            "app.kubernetes.io/managed-by": "grove-operator",
            "app.kubernetes.io/part-of": "llm",
            "nvidia.com/dynamo-graph-deployment-name": "llm-with-a-long-name",
        }
    gone = {"PodCliqueSet": "403", "DynamoGraphDeployment": "403", "PodClique": "403"}
    chain = _chain(*(item for item in objects if item["kind"] not in gone), not_read=gone)
    links = chain.ancestry(chain.podgroups["team/pg-llm-0"].meta, tuple(chain.pods))

    assert links[-1].ref == "DynamoGraphDeployment/team/llm-with-a-long-name"
    assert (links[-1].by, links[-1].item) == ("label", None)


def test_two_podgroups_of_one_podgang_are_both_found() -> None:
    objects = w.served()
    objects.append(w.podgroup(objects[3], "llm-0"))
    chain = _chain(*objects)

    assert [group.meta.name for group in chain.podgroups_of(chain.objects("PodGang")[0])] == ["llm-0", "pg-llm-0"]


def test_kais_note_of_the_top_owner_joins_where_no_owner_does() -> None:
    objects = w.served(group=False)
    note = "group: scheduler.grove.io\nkind: PodGang\nname: llm-0\nuid: PodGang-llm-0\nversion: v1alpha1\n"
    objects.append(w.podgroup(None, "any", notes={"kai.scheduler/top-owner-metadata": note}))
    chain = _chain(*objects)

    found = chain.podgang_of(chain.podgroups["team/any"])
    assert found is not None
    assert found.meta.name == "llm-0"


def test_gang_of_a_pod_is_its_label_not_its_name() -> None:
    """Replica 1's cliques are named ...-1-... and belong to the gang ...-workers-0."""
    under = w.clique_set()
    scaled = w.gang(under, "llm-0-workers-0", cliques=("llm-0-workers-1-decode",), listed=())
    made = w.clique(under, "llm-0-workers-1-decode", gang="llm-0-workers-0")
    member = w.pod(made, "llm-0-workers-1-decode-x", gang="llm-0-workers-0", labels={"grove.io/base-podgang": "llm-0"})
    chain = _chain(under, scaled, made, member)
    podgang = chain.objects("PodGang")[0]

    assert [pod.meta.name for pod in chain.members(podgang)] == ["llm-0-workers-1-decode-x"]
    assert chain.base_names(podgang) == ["llm-0"]


def test_epochs_say_what_a_gang_depends_on() -> None:
    under = w.clique_set()
    labels = {"grove.io/podcliqueset-replica-index": "0"}
    anchor = w.gang(under, "llm-0-1", labels=labels | {"grove.io/epoch": "1"})
    tail = w.gang(under, "llm-0-2", labels=labels | {"grove.io/epoch": "2"}, cliques=("c",))
    lost = w.gang(under, "llm-0-3", labels=labels | {"grove.io/epoch": "3"}, cliques=("c",))
    entries = [
        {"epoch": "1", "role": "Anchor"},
        {"epoch": "2", "dependsOn": ["1"]},
        {"epoch": "3", "dependsOn": ["9"]},
    ]
    epochs = w.thing("grove.io/v1alpha1", "PodGangMap", "llm-0", owner=under, spec={"entries": entries})
    chain = _chain(under, anchor, tail, lost, epochs)

    assert {gang.meta.name: chain.base_names(gang) for gang in chain.objects("PodGang")} == {
        "llm-0-1": [],
        "llm-0-2": ["llm-0-1"],
        "llm-0-3": ["epoch 9"],
    }


def test_events_of_an_earlier_object_of_that_name_are_left_out() -> None:
    under = w.clique_set()
    told = w.event(under, "PodCliqueCreateOrUpdateFailed", "old", uid="PodCliqueSet-of-yesterday")
    chain = _chain(under, told)

    assert chain.events("PodCliqueSet", "team", "llm", "PodCliqueSet-llm") == []
    assert len(chain.events("PodCliqueSet", "team", "llm")) == 1


def test_components_are_the_same_in_both_versions() -> None:
    old = w.graph()
    old["apiVersion"] = "nvidia.com/v1alpha1"
    old["spec"] = {
        "services": {
            "Frontend": {"componentType": "frontend"},
            "Decode": {
                "componentType": "worker",
                "subComponentType": "decode",
                "replicas": 3,
                "multinode": {"nodeCount": 2},
                "resources": {"limits": {"gpu": "8"}},
            },
        }
    }
    old["status"]["services"] = {"Decode": {"componentKind": "PodCliqueScalingGroup", "componentName": "llm-0-decode"}}
    new = w.graph("new")
    template = {"spec": {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "8"}}}]}}
    new["spec"]["components"] = [
        {"name": "Frontend", "type": "frontend"},
        {"name": "Decode", "type": "decode", "replicas": 3, "multinode": {"nodeCount": 2}, "podTemplate": template},
    ]
    new["status"]["components"] = {
        "decode": {"componentKind": "PodCliqueScalingGroup", "componentNames": ["llm-0-decode"], "scheduledReplicas": 0}
    }
    one, other = (components_of(item) for item in _chain(old, new).objects("DynamoGraphDeployment"))

    assert [(part.name, part.type, part.pods, part.gpus_per_pod, part.made_as) for part in one] == [
        ("Decode", "decode", 6, 8.0, ("llm-0-decode",)),
        ("Frontend", "frontend", 1, None, ()),
    ]
    assert [part.name for part in other] == ["Decode", "Frontend"]
    assert (one[0].scheduled, other[0].scheduled) == (None, 0), "a count that is not there stays absent"


def test_objects_without_owners_are_joined_by_label() -> None:
    grove = {"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": "llm"}
    objects = w.served()
    for item in objects[1:]:
        item["metadata"].pop("ownerReferences", None)
        item["metadata"]["labels"] |= grove
    objects[1]["metadata"]["labels"] = {"nvidia.com/dynamo-graph-deployment-name": "llm"}
    for item in objects[-2:]:
        item["metadata"]["labels"]["grove.io/podclique"] = "llm-0-decode"
    chain = _chain(*objects)
    clique = chain.objects("PodClique")[0]

    assert chain.clique_of(chain.pods[0]) == clique
    assert chain.set_of(clique.meta) == chain.objects("PodCliqueSet")[0]
    assert [item.meta.name for item in chain.sets_of(chain.objects("DynamoGraphDeployment")[0])] == ["llm"]


def test_label_does_not_join_what_names_an_earlier_owner() -> None:
    grove = {"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": "llm"}
    objects = w.served()
    objects[1]["metadata"]["uid"] = "PodCliqueSet-of-today"
    objects[2]["metadata"]["labels"] |= grove
    objects[2]["metadata"]["uid"] = "PodClique-of-today"
    objects[-1]["metadata"]["labels"]["grove.io/podclique"] = "llm-0-decode"
    chain = _chain(*objects)

    assert chain.set_of(chain.objects("PodClique")[0].meta) is None
    assert chain.clique_of(chain.pods[1]) is None, "its clique is gone, another has the name"


def test_pod_of_another_owner_has_no_clique() -> None:
    job = w.thing("batch/v1", "Job", "j")
    chain = _chain(job, w.pod(job, "j-0", gang="", labels={"grove.io/podclique": "llm-0-decode"}), *w.served())

    assert chain.clique_of(chain.pods[0]) is None


def test_circle_of_owners_ends() -> None:
    one, other = w.thing("a/v1", "Job", "one"), w.thing("batch/v1", "Job", "two")
    one["apiVersion"] = "batch/v1"
    one["metadata"]["ownerReferences"], other["metadata"]["ownerReferences"] = [w.ref(other)], [w.ref(one)]
    chain = _chain(one, other)

    assert len(chain.owners(chain.objects("Job")[0].meta)) == 2
