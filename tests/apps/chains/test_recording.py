"""Workloads and the ways to their gangs follow each reading; what was not read stays as it was known."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pytest_django import Settings

from apps.accounts.models import NamespaceGrant, User
from apps.accounts.scope import scope_of
from apps.chains.models import ChainLink, TopObject
from apps.chains.selectors import Resolved, gangs_of_top, resolve, top_list
from apps.chains.services import chains_record
from apps.clusters.models import Cluster
from apps.collector.packing import deadlines, opened
from apps.collector.rows import found_rows
from apps.collector.signals import reading_done
from apps.collector.sync import rows_sync
from gangdash.engine.model.deadlines import Deadlines
from gangdash.snapshot.archive import snapshot_of
from tests.chain import world as w

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster.objects.create(name="east", source="folder")


def _read(cluster: Cluster, *objects: w.Object, reading_id: int | None = None, **more: Any) -> int:
    snapshot = w.snapshot(*objects, **more)
    rows_sync(cluster=cluster, found=found_rows(snapshot), now=NOW)
    return chains_record(cluster=cluster, snapshot=snapshot, as_of=NOW, reading_id=reading_id)


def _resolve(user: User, kind: str, name: str, namespace: str = "team") -> Resolved:
    return resolve(scope=scope_of(user), cluster="east", kind=kind, namespace=namespace, name=name)


def test_workload_has_its_ladder_with_counts_that_nobody_states_left_out(cluster: Cluster) -> None:
    _read(cluster, *w.served())
    top = TopObject.objects.get()
    layers = {layer["kind"]: layer for layer in top.components[0]["layers"]}

    assert (top.kind, top.stage, top.public_id) == ("DynamoGraphDeployment", "", "east~DynamoGraphDeployment-llm")
    assert list(layers) == ["DynamoGraphDeployment", "PodCliqueSet", "PodClique", "PodGang", "PodGroup", "Pod"]
    assert (layers["Pod"]["wanted"], layers["Pod"]["placed"], layers["Pod"]["ready"]) == (2, 2, 2)
    assert layers["PodClique"]["wanted"] == 2
    assert layers["PodClique"]["ready"] is None, "the clique has no status"
    assert (layers["PodGang"]["exist"], layers["PodGroup"]["exist"]) == (1, 1)


def test_stage_is_kept_with_what_proves_it(cluster: Cluster) -> None:
    _read(cluster, w.graph(state="", age=600))
    top = TopObject.objects.get()

    assert (top.stage, top.controller, top.is_overdue) == ("S2", "Dynamo's operator", True)
    assert top.since == datetime(2026, 11, 30, 8, 50, tzinfo=UTC)


def test_unchanged_reading_writes_nothing(cluster: Cluster) -> None:
    assert _read(cluster, *w.served()) > 0
    assert _read(cluster, *w.served()) == 0


def test_what_is_gone_goes_and_what_was_not_read_stays(cluster: Cluster) -> None:
    objects = w.served()
    _read(cluster, *objects)
    gaps = {"DynamoGraphDeployment": "403", "PodCliqueSet": "403", "PodClique": "403", "PodGang": "403"}
    rest = [item for item in objects if item["kind"] not in gaps]
    _read(cluster, *rest, not_read=gaps)
    assert TopObject.objects.exists(), "not being able to look is not the same as there being none"
    _read(cluster, *rest)
    assert not TopObject.objects.exists()


def test_poll_that_is_done_records_workloads(cluster: Cluster) -> None:
    reading_done.send(sender=Cluster, cluster=cluster, snapshot=w.snapshot(*w.served()), as_of=NOW)

    assert TopObject.objects.count() == 1


@pytest.mark.parametrize(
    "kind,name",
    [
        ("DynamoGraphDeployment", "llm"),
        ("PodCliqueSet", "llm"),
        ("PodClique", "llm-0-decode"),
        ("PodGang", "llm-0"),
        ("PodGroup", "pg-llm-0"),
        ("Pod", "llm-0-decode-1"),
    ],
)
def test_any_object_leads_to_its_gang(cluster: Cluster, alice: User, kind: str, name: str) -> None:
    _read(cluster, *w.served())
    found = _resolve(alice, kind, name)

    assert [gang.name for gang in found.gangs] == ["pg-llm-0"]
    assert found.top is not None
    assert found.top.name == "llm"


def test_plain_owners_lead_to_their_gang_too(cluster: Cluster, alice: User) -> None:
    job = w.thing("batch/v1", "Job", "train")
    group = w.podgroup(job, "pg-train")
    _read(cluster, job, group, w.pod(job, "train-0", gang="", group="pg-train"))

    assert [gang.name for gang in _resolve(alice, "Job", "train").gangs] == ["pg-train"]


def test_nothing_leads_out_of_what_was_never_seen(cluster: Cluster, alice: User) -> None:
    _read(cluster, *w.served())

    assert not _resolve(alice, "PodClique", "other").is_known
    assert not _resolve(alice, "Pod", "other").is_known


def test_workload_without_a_gang_is_known_and_leads_to_none(cluster: Cluster, alice: User) -> None:
    top = w.graph()
    _read(cluster, top, w.clique_set(top))
    found = _resolve(alice, "PodCliqueSet", "llm")

    assert (found.is_known, found.gangs) == (True, ())
    assert gangs_of_top(top=TopObject.objects.get()) == {}


def test_others_namespaces_are_not_there(cluster: Cluster, alice: User, bob: User) -> None:
    _read(cluster, *w.served())

    assert top_list(scope=scope_of(alice)).count() == 1
    assert top_list(scope=scope_of(bob)).count() == 0
    assert not _resolve(bob, "PodClique", "llm-0-decode").is_known
    NamespaceGrant.objects.create(user=bob, cluster="east", namespace="team")
    assert _resolve(User.objects.get(pk=bob.pk), "PodClique", "llm-0-decode").is_known


def test_links_are_few(cluster: Cluster) -> None:
    _read(cluster, *w.served())

    assert set(ChainLink.objects.values_list("kind", flat=True)) == {
        "DynamoGraphDeployment", "PodCliqueSet", "PodClique", "PodGang",
    }  # fmt: skip


def test_layer_that_could_not_be_read_has_no_counts(cluster: Cluster) -> None:
    objects = [item for item in w.served() if item["kind"] != "Pod"]
    _read(cluster, *objects, not_read={"Pod": "403"})
    top = TopObject.objects.get()
    pods = top.components[0]["layers"][-1]

    assert (pods["kind"], pods["wanted"], pods["exist"], pods["ready"]) == ("Pod", 2, None, None)
    assert top.stage == ""


def test_time_runs_out_in_a_cluster_that_does_not_change(cluster: Cluster) -> None:
    objects = [*w.served(), w.graph("new", state="", age=30)]
    _read(cluster, *objects, reading_id=1)
    assert not TopObject.objects.get(name="new").is_overdue
    snapshot, later = replace(w.snapshot(*objects), as_of=w.AS_OF + 60), NOW + timedelta(seconds=60)
    assert chains_record(cluster=cluster, snapshot=snapshot, as_of=later, reading_id=1) == 1
    assert TopObject.objects.get(name="new").is_overdue
    assert TopObject.objects.filter(name="llm").exists()
    assert ChainLink.objects.exists()


def test_a_reading_that_a_dead_worker_left_unrecorded_is_recorded_with_the_next_poll(cluster: Cluster) -> None:
    _read(cluster, *w.served(), reading_id=1)
    # Reading 2 was stored and its worker died before the workloads were written; the next poll found nothing new.
    assert _read(cluster, w.graph("new", state="", age=30), reading_id=2) > 0
    assert [top.name for top in TopObject.objects.all()] == ["new"]
    assert _read(cluster, w.graph("new", state="", age=30), reading_id=2) == 0


def test_settings_say_how_long_a_controller_may_take(settings: Settings, cluster: Cluster) -> None:
    assert asdict(Deadlines()) == settings.GANGDASH_DEADLINES
    assert deadlines() == {}
    settings.GANGDASH_DEADLINES = {**settings.GANGDASH_DEADLINES, "first_status": 900}
    assert deadlines() == {"first_status": 900}
    content = json.dumps({"kind": "List", "apiVersion": "v1", "items": [w.graph(state="", age=600)], "asOf": w.NOW,
                          "read": list(w.ALL_READ)}).encode()  # fmt: skip
    snapshot = snapshot_of(opened(content, as_of=NOW, history={}, name="east"))
    chains_record(cluster=cluster, snapshot=snapshot, as_of=NOW)
    assert not TopObject.objects.get().is_overdue
