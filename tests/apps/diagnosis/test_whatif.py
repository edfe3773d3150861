"""What changes would do: on which moment, for whose eyes, and what is not run at all."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache

from apps.accounts.scope import EVERYTHING, Scope
from apps.clusters.models import Cluster
from apps.collector.models import ReadingContent
from apps.diagnosis.models import Snapshot
from apps.diagnosis.services import whatif
from apps.diagnosis.services.whatif import Told, namespace_of, whatif_run
from apps.errors import ApplicationError
from apps.workloads.veil import HIDDEN
from gangdash.engine.changes import change_from_text
from tests.apps.diagnosis.analysed import NOW, analysed, busy_cluster

TEAM_A = Scope(namespaces=frozenset({("east", "team-a")}))


@pytest.fixture(autouse=True)
def nothing_kept() -> None:
    cache.clear()


@pytest.fixture
def moment(east: Cluster) -> Snapshot:
    return analysed(east, busy_cluster())


def asked(*texts: str, scope: Scope = EVERYTHING, **more: str) -> Told:
    cluster = Cluster.objects.get(name="east")
    return whatif_run(cluster=cluster, scope=scope, changes=[change_from_text(text) for text in texts], **more)


def refusal(*texts: str, scope: Scope = EVERYTHING, **more: str) -> ApplicationError:
    with pytest.raises(ApplicationError) as caught:
        asked(*texts, scope=scope, **more)
    return caught.value


def test_the_difference_of_two_cycles_names_who_starts(moment: Snapshot) -> None:
    told = asked("uncordon:n2")
    assert told.document["starts"] == ["team-a/mine"]
    assert told.document["sentence"].startswith("Starts 1 gang")
    assert (told.document["digest"], told.is_newest) == (moment.digest, True)
    assert told.document["before"]["gangs_waiting"] == 2
    assert told.document["after"]["gangs_waiting"] == 1


def test_several_changes_are_made_together(moment: Snapshot) -> None:
    assert asked("uncordon:n2", "add_nodes:n1:count=1").document["starts"] == ["team-a/mine", "team-b/theirs"]


def test_names_and_totals_of_other_namespaces_are_not_told(moment: Snapshot) -> None:
    told = asked("uncordon:n2", "add_nodes:n1:count=1", scope=TEAM_A).document
    assert told["starts"] == ["team-a/mine", HIDDEN]
    assert told["before"]["gangs_waiting"] == 1
    assert "theirs" not in str(told)


def test_answers_for_one_reader_are_not_those_of_another(moment: Snapshot) -> None:
    everything = asked("uncordon:n2").document["before"]
    assert asked("uncordon:n2", scope=TEAM_A).document["before"] != everything


@pytest.mark.parametrize(
    "text",
    [
        "evict_gang:team-b/theirs",
        "raise_priority:PodGroup/team-b/theirs:value=100",
        "set_label:PodGroup/team-b/theirs:a=b",
        "submit:team-b/new:queue=leaf,gpu=1",
        "wait_for:PodGroup/team-b/theirs:state=ended",
    ],
)
def test_gangs_of_other_namespaces_cannot_be_changed_nor_found_out(moment: Snapshot, text: str) -> None:
    there = refusal(text, scope=TEAM_A)
    nowhere = refusal(text.replace("theirs", "nothing").replace("/new", "/nothing"), scope=TEAM_A)
    assert there.code == nowhere.code == "change_not_valid"
    assert there.detail.replace("theirs", "nothing").replace("/new", "/nothing") == nowhere.detail


def test_a_gang_is_not_stopped_by_its_name_in_another_namespace(moment: Snapshot) -> None:
    assert refusal("evict_gang:team-a/theirs", scope=TEAM_A).code == "change_not_valid"


@pytest.mark.parametrize(
    "text",
    ["add_nodes:n1:count=1000000000", "submit:team-a/x:queue=leaf,pods=9999999", "raise_limit:leaf:gpu=nan"],
)
def test_sizes_that_would_only_cost_time_are_refused(moment: Snapshot, text: str) -> None:
    assert "out of range" in refusal(text).detail


def test_what_cannot_be_changed_is_said_in_one_line(moment: Snapshot) -> None:
    assert refusal("uncordon:nowhere").detail == "uncordon: no node 'nowhere' in the snapshot"
    assert refusal("restart_component:Deployment/x/y").code == "change_not_valid"
    assert refusal().code == "change_not_valid"


def test_an_older_moment_answers_by_its_digest(east: Cluster, moment: Snapshot) -> None:
    newer = analysed(east, busy_cluster()[:-2], NOW + timedelta(minutes=5))
    assert asked("uncordon:n2").snapshot == newer
    told = asked("uncordon:n2", base=moment.digest)
    assert (told.snapshot, told.is_newest) == (moment, False)
    assert refusal("uncordon:n2", base="sha256:other").code == "dump_expired"


def test_a_caller_can_insist_on_a_moment(moment: Snapshot) -> None:
    assert asked("uncordon:n2", expected=moment.digest).is_newest
    assert refusal("uncordon:n2", expected="sha256:older").code == "base_moved"


def test_a_cluster_that_was_never_analysed_has_no_answer(east: Cluster) -> None:
    assert refusal("uncordon:n2").code == "not_diagnosed"


def test_objects_that_are_gone_have_no_answer(moment: Snapshot) -> None:
    ReadingContent.objects.all().delete()
    assert refusal("uncordon:n2").code == "dump_expired"


def test_large_clusters_are_left_to_the_command_line(moment: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whatif, "NODES_MAX", 1)
    assert refusal("uncordon:n2").code == "cluster_too_large"


def test_the_same_question_is_run_once(moment: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    first = asked("uncordon:n2").document

    def again(*_: Any, **__: Any) -> None:
        raise AssertionError("run twice")

    monkeypatch.setattr(whatif, "what_if", again)
    assert asked("uncordon:n2").document == first


@pytest.mark.parametrize(
    "text, namespace",
    [
        ("uncordon:n2", ""),
        ("uncordon:Node/n2", ""),
        ("raise_limit:Queue/leaf", ""),
        ("evict_gang:team-a/g", "team-a"),
        ("wait_for:Pod/team-a/p", "team-a"),
        ("wait_for:", ""),
    ],
)
def test_the_namespace_of_what_a_change_touches(text: str, namespace: str) -> None:
    assert namespace_of(change_from_text(text)) == namespace
