"""Any moment of the past as it was: what waited, what was said, and the objects to replay it with."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client

from apps.accounts.models import User
from apps.clusters.models import Cluster
from apps.diagnosis import tasks
from apps.diagnosis.models import Snapshot
from gangdash.replay import replay
from gangdash.snapshot.archive import load_bytes, snapshot_of
from tests.apps import raw
from tests.apps.diagnosis.conftest import NOW, Store

TOO_BIG, FITS = raw.gang("g", pods=3, gpus=8), raw.gang("g", pods=1, gpus=8)


@pytest.fixture(autouse=True)
def past(east: Cluster, store: Store, clock: Any) -> None:
    """Let gang g wait for room from minute 0, fit from minute 10 and be gone from minute 20."""
    steps = [(0, TOO_BIG), (5, [*TOO_BIG, raw.node("n3", gpus=0)]), (10, FITS), (20, raw.gang("h", pods=1, gpus=8))]
    for minutes, objects in steps:
        clock.move_to(NOW + timedelta(minutes=minutes))
        store(raw.cluster(objects), NOW + timedelta(minutes=minutes))
        tasks.diagnose_due()


def get(client: Client, path: str, minutes: float | None = None, **query: Any) -> Any:
    if minutes is not None:
        query["at"] = (NOW + timedelta(minutes=minutes)).isoformat()
    return client.get(f"/api/v1{path}?{urlencode(query)}")


def rows(client: Client, minutes: float | None, **query: Any) -> list[tuple[str, str, str, float]]:
    found = get(client, "/gangs", minutes, **query).json()["results"]
    return [(row["name"], row["verdict"], row["state"], row["gpus_waiting"]) for row in found]


def test_the_list_shows_what_waited_then(client: Client, alice: User) -> None:
    client.force_login(alice)
    assert rows(client, -1) == []
    assert rows(client, 7) == [("g", "NO_FIT", "waits", 24)]
    said = get(client, "/gangs/east~gang-team-a-g/explanation", 12).json()["verdict"]
    assert said != "NO_FIT"
    assert rows(client, 12) == [("g", said, "waits", 8)]
    assert rows(client, 21) == rows(client, None)
    assert [name for name, *_ in rows(client, 21)] == ["h"]


@pytest.mark.parametrize("ordering", ["waiting_since", "-gpus_waiting", "verdict", "name"])
def test_filters_and_orders_are_those_of_then(client: Client, alice: User, ordering: str) -> None:
    client.force_login(alice)
    assert len(rows(client, 7, verdict="NO_FIT", text="no_fit", ordering=ordering)) == 0
    assert len(rows(client, 7, verdict="NO_FIT", state="waits", ordering=ordering)) == 1
    assert rows(client, 7, verdict="WILL_START", ordering=ordering) == []


def test_a_gang_of_then_has_no_pods_and_no_numbers_of_now(client: Client, alice: User) -> None:
    client.force_login(alice)
    found = get(client, "/gangs/east~gang-team-a-g", 7).json()
    assert (found["verdict"], found["gone_at"], found["pods"], found["pods_total"]) == ("NO_FIT", None, None, None)
    assert get(client, "/gangs/east~gang-team-a-g").json()["gone_at"] is not None
    assert get(client, "/gangs/east~gang-team-a-g", -1).json()["code"] == "not_diagnosed"


def test_bob_sees_the_past_of_his_namespace_only(client: Client, bob: User, store: Store) -> None:
    store(raw.cluster(raw.gang("x", namespace="team-b", pods=3, gpus=8)), NOW + timedelta(minutes=30))
    tasks.diagnose_due()
    client.force_login(bob)
    assert [name for name, *_ in rows(client, 7)] == ["g"]
    assert rows(client, 31) == []
    assert get(client, "/clusters/east/snapshot", 7).json()["code"] == "whole_view_needed"


@pytest.mark.parametrize("minutes", [2, 7, 12])
def test_a_past_moment_is_replayed_by_the_installed_version_to_what_was_said(
    client: Client, alice: User, minutes: int
) -> None:
    client.force_login(alice)
    response = get(client, "/clusters/east/snapshot", minutes)
    assert response["Content-Type"] == "application/gzip"
    diagnosis = replay(snapshot_of(load_bytes(response.content, name="past.json.gz")), include_all=True)
    [document] = [found for found in diagnosis.explanations if found.gang.name == "g"]
    said = get(client, "/gangs/east~gang-team-a-g/explanation", minutes).json()
    assert (document.verdict, document.code) == (said["verdict"], said["code"])
    # Letter by letter the same snapshot as the one that was analysed, with what was known before it.
    assert Snapshot.objects.filter(digest=diagnosis.digest, as_of__lte=NOW + timedelta(minutes=minutes)).exists()


def test_a_moment_before_the_first_reading_is_refused(client: Client, alice: User) -> None:
    client.force_login(alice)
    assert get(client, "/clusters/east/snapshot", -1).json()["code"] == "dump_expired"
    assert get(client, "/clusters/east/snapshot").status_code == 400


def test_attempts_say_when_each_was_diagnosed(client: Client, alice: User) -> None:
    client.force_login(alice)
    [found] = get(client, "/gangs/east~gang-team-a-g/attempts").json()
    assert (found["number"], found["name"], found["bound_at"]) == (1, "g", None)
    assert found["seen_at"] == found["diagnosed_at"] == "2026-11-30T09:00:00Z"
    assert found["ended_at"] == "2026-11-30T09:20:00Z"


def test_the_first_page_can_be_pinned_and_leads_to_gangs_of_then(client: Client, alice: User, bob: User) -> None:
    client.force_login(alice)
    moment = (NOW + timedelta(minutes=7)).isoformat()
    text = client.get(f"/?{urlencode({'at': moment})}").content.decode()
    assert "1 gang waited for 24 GPUs" in text
    assert "Back to live" in text
    assert "gangs/team-a/g/?uid=gang-team-a-g&amp;at=2026-11-30T09%3A07%3A00Z" in text
    assert "0 gangs waited" in client.get(f"/?{urlencode({'at': moment, 'verdict': 'STUCK'})}").content.decode()
    assert "Back to live" not in client.get("/?at=nonsense").content.decode()


def test_bob_is_shown_no_past_gang_of_others(client: Client, bob: User, store: Store) -> None:
    store(raw.cluster(raw.gang("x", namespace="team-b", pods=3, gpus=8)), NOW + timedelta(minutes=30))
    tasks.diagnose_due()
    client.force_login(bob)
    text = client.get(f"/?{urlencode({'at': (NOW + timedelta(minutes=31)).isoformat()})}").content.decode()
    assert "0 gangs waited" in text
    assert "team-b" not in text


@pytest.mark.parametrize("seconds, is_stale", [(30, False), (60, True), (600, True)])
def test_a_verdict_of_a_cluster_that_is_not_read_any_more_is_stale(
    client: Client, alice: User, clock: Any, seconds: int, is_stale: bool
) -> None:
    client.force_login(alice)
    clock.move_to(NOW + timedelta(minutes=20, seconds=seconds))
    [found] = get(client, "/gangs").json()["results"]
    assert (found["certainty"] == "stale") is is_stale
    assert found["verdict"]
    assert found["read_as_of"] == "2026-11-30T09:20:00Z"


def page(client: Client, minutes: float | None, path: str = "/clusters/east/gangs/team-a/g/") -> str:
    query = {"uid": "gang-team-a-g"} if path != "/" else {}
    if minutes is not None:
        query["at"] = (NOW + timedelta(minutes=minutes)).isoformat()
    return client.get(f"{path}?{urlencode(query)}").content.decode()


@pytest.mark.parametrize("minutes", [0, 7, 9.9])
def test_the_document_of_a_moment_is_the_one_that_opened_its_reason(
    client: Client, alice: User, minutes: float
) -> None:
    client.force_login(alice)
    said = get(client, "/gangs/east~gang-team-a-g/explanation", minutes).json()
    assert (said["verdict"], said["as_of"]) == ("NO_FIT", "2026-11-30T09:00:00Z")


def test_nothing_is_said_of_a_moment_after_the_end(client: Client, alice: User) -> None:
    client.force_login(alice)
    assert get(client, "/gangs/east~gang-team-a-g/explanation", 25).json()["code"] == "not_diagnosed"
    assert "No explanation of that moment is kept." in page(client, 25)


def test_a_pinned_gang_page_has_nothing_of_now(client: Client, alice: User) -> None:
    client.force_login(alice)
    then, now = page(client, 7), page(client, None)
    assert "gone since" in now
    assert "gone since" not in then
    assert "<title>g: No fit" in then
    assert "The pods of a past moment are not kept." in then
    assert "1 pod (1 x 8)" not in then
    assert "waited for 24" in then
    assert '<li aria-current="true"><a href=' in then
    assert "/explanation?at=2026-11-30T09%3A07%3A00Z" in then


def test_reasons_and_changes_lead_to_their_moment(client: Client, alice: User, clock: Any) -> None:
    client.force_login(alice)
    clock.move_to(NOW + timedelta(minutes=15))
    assert "uid=gang-team-a-g&amp;at=2026-11-30T09%3A00%3A00Z" in page(client, None)
    first = page(client, None, "/")
    assert "uid=gang-team-a-g&amp;at=2026-11-30T09%3A10%3A00Z" in first
    assert 'data-pin="/?at="' in first
    assert 'href="/?at=2026-11-30T09%3A10%3A00Z"' in first


def test_the_pinned_first_page_has_the_chart_and_the_capacity_of_then(client: Client, alice: User) -> None:
    client.force_login(alice)
    then = page(client, 7, "/")
    assert "1 gang waited for 24 GPUs, while 16 of 16 were free" in then
    assert "figure-waiting" in then
    assert '"text":"pinned"' in then.replace(" ", "")
    before = page(client, -5, "/")
    assert "0 gangs waited for 0 GPUs" in before
    assert "No sample of the capacity of east is that old." in before


def test_the_domains_of_a_pinned_page_are_those_of_then(client: Client, alice: User, store: Store, clock: Any) -> None:
    client.force_login(alice)
    rack = {
        "apiVersion": "kai.scheduler/v1alpha1", "kind": "Topology", "metadata": {"name": "t"},
        "spec": {"levels": [{"nodeLabel": "rack"}]},
    }  # fmt: skip
    for minutes, gpus in ((30, 8), (40, 4)):
        nodes = [raw.node(f"r{at}", gpus=gpus, labels={"rack": f"rack-{at}"}) for at in (1, 2)]
        clock.move_to(NOW + timedelta(minutes=minutes))
        store(raw.cluster(raw.gang("g", pods=3, gpus=8, uid="late"), rack, nodes), NOW + timedelta(minutes=minutes))
        tasks.diagnose_due()
    path = "/clusters/east/gangs/team-a/g/?" + urlencode(
        {"uid": "late", "at": (NOW + timedelta(minutes=35)).isoformat()}
    )
    then, now = (
        client.get(path).content.decode(),
        client.get("/clusters/east/gangs/team-a/g/?uid=late").content.decode(),
    )
    assert "rack-1: 8 of 8 free." in then
    assert "As sampled" in then
    assert "rack-1: 4 of 4 free." in now
    Cluster.objects.get().capacity_samples.all().delete()
    assert "Not kept for that moment" in client.get(path).content.decode()
