"""Sentences as they are read: whole, short, from facts that hold, one voice for one and for many."""

from __future__ import annotations

import re

from gangdash.documents import ExplanationDocument
from gangdash.engine.model.podgroup import SubGroupSpec, TopologyConstraint
from tests.engine.builders import HOST, Cluster
from tests.explain.helpers import explain, recorded_causes, said, scene_causes, waiting

_FEW = re.compile(r"(?<![\d.,])1 (GPUs|pods|nodes|gangs|domains|CPUs|devices)\b")
_MANY = re.compile(r"(?<![\d.])(?:0|[2-9]|\d\d+) (GPU|pod|node|gang|domain|CPU|device)\b")
_ROUGH = ("None", "{", "}", "()", " ,", "  ", "[]", "by preempt ", "preempt:")


def every_sentence() -> list[tuple[ExplanationDocument, str]]:
    entries = (*recorded_causes(), *scene_causes())
    return [(entry, text) for entry in entries for text in (entry.sentence, *(other.sentence for other in entry.also))]


def test_every_sentence_is_short_whole_and_ends() -> None:
    for _, text in every_sentence():
        assert len(text) <= 240, text
        assert text.endswith("."), text
        assert not [rough for rough in _ROUGH if rough in text], text


def test_one_is_one_and_many_are_many() -> None:
    for _, text in every_sentence():
        assert not _FEW.search(text), text
        assert not _MANY.search(text), text


def test_numbers_of_the_cause_are_in_what_binds_or_in_what_holds() -> None:
    for entry in (*recorded_causes(), *scene_causes()):
        if entry.code not in {"GPUS_BUSY", "DOMAIN_TOO_SMALL", "DOMAIN_BUSY", "CLUSTER_TOO_SMALL", "NODE_TOO_SMALL"}:
            continue
        first = entry.binding[0]
        assert isinstance(first.need, int | float)
        if first.unit in {"gpu", "pods"}:
            for number in (first.need, first.have):
                assert re.search(rf"(?<![\d.]){number:g}(?![\d])", entry.sentence) or number == 0, entry.sentence


def test_nearly_every_waiting_gang_is_proved_or_derived() -> None:
    entries = list(waiting((*recorded_causes(), *scene_causes())))
    sure = sum(entry.certainty in {"proved", "derived"} for entry in entries)
    assert sure / len(entries) >= 0.97


def test_not_all_members_fit_where_no_placement_exists() -> None:
    for entry in (*recorded_causes(), *scene_causes()):
        members = entry.members
        if entry.verdict in {"NO_FIT", "NODE"} and members.needed:
            assert members.fit + members.unfit + members.not_evaluated == members.needed, entry.gang
            assert members.unfit + members.not_evaluated > 0, entry.sentence


def test_no_holder_is_the_gang_itself_and_none_is_named_twice() -> None:
    for entry in (*recorded_causes(), *scene_causes()):
        names = [holder.gang for holder in entry.holders]
        assert len(names) == len(set(names)), entry.gang
        own = [holder.evictable for holder in entry.holders if holder.gang == entry.gang.key]
        assert own in ([], ["no: terminating and stuck"]), entry.gang


def test_preemption_is_spoken_as_a_noun() -> None:
    cluster = Cluster()
    cluster.node("n1", 8)
    cluster.gang("low", 1, 8, on=["n1"])
    cluster.gang("g", 1, 8, kind="build-preemptible", age=5)
    entry = explain(cluster)
    assert said(entry) == ("WILL_START", "WAITS_FOR_EVICTION")
    assert entry.sentence.startswith("Starts by preemption: the next cycle evicts 1 pod of low")
    assert entry.holders[0].evictable == "yes: by preemption"


def test_full_cluster_says_that_none_is_free() -> None:
    cluster = Cluster()
    cluster.node("n1", 1)
    cluster.gang("hold", 1, 1, kind="build", on=["n1"])
    cluster.gang("g", 1, 1)
    assert explain(cluster).sentence == (
        "Needs 1 GPU; none of 1 GPU on the 1 node it may use is free, all are held by hold."
    )


def shared(gpus: float, pods: int) -> Cluster:
    """Return one node of two devices, half of each in use, and a gang of pods that ask for a share."""
    cluster = Cluster()
    cluster.node("n1", 2)
    for index in range(2):
        cluster.gang(f"hold-{index}", 0, minimum=1, kind="build")
        labels = {"runai-gpu-group": f"group-{index}"}
        cluster.pod(f"hold-{index}", 0, 0.5, on="n1", labels=labels)
    cluster.gang("g", pods, gpus)
    return cluster


def test_shares_that_fit_one_by_one_are_busy_and_no_matter_of_shape() -> None:
    entry = explain(shared(0.5, 3))
    assert said(entry) == ("NO_FIT", "GPUS_BUSY")
    assert "3 pods with 0.5 GPUs of one device each; 2 fit" in entry.sentence
    assert (entry.binding[0].need, entry.binding[0].have) == (3, 2)


def test_share_larger_than_what_any_device_has_left_is_a_matter_of_shape() -> None:
    entry = explain(shared(0.6, 1))
    assert said(entry) == ("NO_FIT", "GPU_SHAPE")
    assert (entry.binding[0].need, entry.binding[0].have) == (0.6, 0.5)


def test_devices_that_are_all_in_use_are_busy_and_no_matter_of_shape() -> None:
    cluster = Cluster()
    cluster.node("n1", 2)
    cluster.gang("hold", 1, 2, kind="build", on=["n1"])
    cluster.gang("g", 1, 0.25)
    entry = explain(cluster)
    assert said(entry) == ("NO_FIT", "GPUS_BUSY")
    assert entry.sentence == (
        "Needs 1 pod with 0.25 GPUs of one device each; no device of the 1 node it may use has that much free, all are "
        "held by hold."
    )


def test_gpu_memory_beyond_every_device_names_the_largest() -> None:
    cluster = Cluster()
    cluster.node("n1", 2, gpu_memory=8000)
    cluster.gang("g", 0, minimum=1)
    cluster.pod("g", 0, 0, annotations={"gpu-memory": "9000"})
    entry = explain(cluster)
    assert said(entry) == ("NO_FIT", "GPU_SHAPE")
    assert entry.sentence == "Needs 9000 MiB on one device; the largest device has 8000."
    assert (entry.binding[0].need, entry.binding[0].have) == (9000, 8000)


def test_selector_that_only_a_busy_node_meets_is_told_by_what_fits_now() -> None:
    cluster = Cluster()
    cluster.node("n1", 8, labels={"kind": "a"})
    cluster.node("n2", 8)
    cluster.gang("hold", 1, 8, kind="build", on=["n1"])
    cluster.gang("g", 1, 8, pod={"node_selector": {"kind": "a"}})
    entry = explain(cluster)
    assert "even empty" not in entry.sentence


def test_subgroup_too_large_for_any_node_never_counts_as_busy() -> None:
    cluster = Cluster()
    for index in range(30):
        cluster.node(f"n{index}", 8, labels={"example.com/rack": f"r{index % 3}"})
    cluster.topology("example.com/rack", HOST)
    host = TopologyConstraint("topo", required_level=HOST)
    rack = TopologyConstraint("topo", required_level="example.com/rack")
    parts = (
        SubGroupSpec("a", min_member=2, topology=rack),
        SubGroupSpec("b", min_member=2, topology=rack),
        SubGroupSpec("c", min_member=3, topology=host),
    )
    cluster.gang("g", 0, sub_groups=parts)
    for name, count, gpus in (("a", 2, 1), ("b", 2, 2), ("c", 3, 8)):
        for index in range(count):
            cluster.pod("g", index, gpus, sub_group=name)
    entry = explain(cluster)
    assert said(entry) == ("NO_FIT", "DOMAIN_TOO_SMALL")
    assert entry.sentence.startswith("Subgroup c needs 24 GPUs in one node")
    assert entry.certainty == "proved"


def test_limit_beside_room_says_nothing_about_cordoned_nodes() -> None:
    cluster = Cluster()
    cluster.node("n1", 8)
    cluster.node("n2", 8, cordoned=True)
    cluster.queue("q", -1, 2)
    cluster.gang("g", 1, 4)
    entry = explain(cluster)
    assert said(entry) == ("POLICY", "QUEUE_LIMIT")
    assert [str(other.code) for other in entry.also] == []
