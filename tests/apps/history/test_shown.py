"""What pages and REST show of the history: loops, states of nodes and parts, free capacity and shares over time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import NamespaceGrant, User
from apps.clusters.models import Cluster
from apps.diagnosis import tasks
from apps.workloads.selectors import LOOP_TIMES
from tests.apps import raw
from tests.apps.diagnosis.conftest import NOW, Store
from tests.dashboard.markup import Page, visible_text

RACK = {
    "apiVersion": "kai.scheduler/v1alpha1", "kind": "Topology", "metadata": {"name": "t"},
    "spec": {"levels": [{"nodeLabel": "rack"}]},
}  # fmt: skip
GANG = "/clusters/east/gangs/team-a/g/?uid=gang-team-a-g"


def node(name: str, **more: Any) -> raw.Object:
    return raw.node(name, labels={"rack": f"rack-{name}"}, **more)


@pytest.fixture(autouse=True)
def loop(east: Cluster, store: Store, clock: Any) -> None:
    """Let gang g get its nodes and lose them, again and again, while n2 is cordoned and comes back."""
    for number in range(2 * LOOP_TIMES):
        moment = NOW + timedelta(minutes=10 * number)
        on = "" if number % 2 else "n1"
        clock.move_to(moment)
        placed = raw.gang("g", gpus=8, on=on)
        if on:
            since = moment.isoformat().replace("+00:00", "Z")
            placed[1]["status"]["conditions"] = [
                {"type": "PodScheduled", "status": "True", "lastTransitionTime": since}
            ]
        objects = [node("n1"), node("n2", cordoned=bool(number % 2)), *raw.cluster()[2:], RACK, *placed]
        store(objects, moment)
        tasks.diagnose_due()


def text(client: Client, path: str) -> str:
    content = client.get(path).content
    assert not Page(content).faults
    return visible_text(content)


def test_a_loop_is_marked_on_the_gang_and_listed_on_the_first_page(client: Client, alice: User) -> None:
    client.force_login(alice)
    assert "It goes round in a loop. In the last 2 h 0 attempts of it ended" in text(client, GANG)
    assert "lost its nodes 3 times" in text(client, GANG)
    assert "Round and round in the last 2 h: 3\u00d7 g lost its nodes 3 times" in text(client, "/")


def test_the_ladder_of_an_attempt_has_its_times(client: Client, alice: User) -> None:
    client.force_login(alice)
    shown = text(client, GANG)
    assert "Requested not seen Gang created 08:00:00" in shown
    assert "Node chosen 09:00:00" in shown
    assert "Minimum ready not yet Lost its nodes 3 times 09:50:00" in shown


def test_loops_over_rest_are_those_one_may_see(client: Client, alice: User, bob: User) -> None:
    client.force_login(alice)
    [found] = client.get("/api/v1/loops").json()["results"]
    assert (found["gang"]["name"], found["failures"], found["evictions"]) == ("g", 0, 3)
    assert client.get("/api/v1/loops?cluster=west").json()["results"] == []
    NamespaceGrant.objects.filter(user=bob).update(namespace="team-b")
    client.force_login(bob)
    assert client.get("/api/v1/loops").json()["results"] == []
    assert "Round and round" not in text(client, "/")


def test_changes_of_nodes_are_shown_newest_first(client: Client, alice: User) -> None:
    client.force_login(alice)
    assert "09:50:00 n2 ready cordoned" in text(client, "/nodes/")
    rows = client.get("/api/v1/clusters/east/changes?page_size=2").json()
    assert [(row["subject"], row["was"], row["state"]) for row in rows["results"]] == [
        ("n2", "ready", "cordoned"), ("n2", "cordoned", "ready"),
    ]  # fmt: skip
    assert rows["next"]
    since = (NOW + timedelta(minutes=45)).isoformat().replace("+", "%2B")
    assert len(client.get(f"/api/v1/clusters/east/changes?since={since}").json()["results"]) == 1


def test_free_gpus_over_time_are_drawn_and_listed(client: Client, alice: User) -> None:
    client.force_login(alice)
    shown = text(client, "/topology/")
    assert "Free GPUs over time" in shown
    assert "From whole cluster rack-n1 rack-n2" in shown
    assert "2026-11-30 09:50:00 UTC 8 8 0" in shown
    assert "2026-11-30 09:40:00 UTC 8 0 8" in shown
    content = client.get("/topology/").content.decode()
    assert 'aria-label="Free GPUs over time. Now whole cluster 8; rack-n1 8; rack-n2 0."' in content


def test_what_queues_hold_over_time_is_drawn_and_listed(client: Client, alice: User) -> None:
    client.force_login(alice)
    shown = text(client, "/queues/?hours=24")
    assert "GPUs that queues hold, over time" in shown
    assert "From leaf" in shown
    # The first sample came before the first replay.
    assert "2026-11-30 09:00:00 UTC \u2014" in shown


def test_capacity_over_rest_begins_with_what_was_true_then(client: Client, alice: User, bob: User) -> None:
    client.force_login(alice)
    since = (NOW + timedelta(minutes=44)).isoformat().replace("+", "%2B")
    rows = client.get(f"/api/v1/clusters/east/capacity?since={since}").json()
    assert [row["at"] for row in rows] == ["2026-11-30T09:40:00Z", "2026-11-30T09:50:00Z"]
    assert rows[0]["cluster"] == {"gpus": 16, "free": 8, "lost": 0}
    assert rows[1]["domains"]["t|rack-n2"] == {"gpus": 8, "free": 0, "lost": 8}
    assert set(rows[0]["queues"]) == {"department", "leaf"}
    client.force_login(bob)
    assert client.get("/api/v1/clusters/east/capacity").status_code == 200
    assert client.get("/api/v1/clusters/west/capacity").status_code == 404


def test_the_verdict_counts_evictions_that_earlier_readings_saw(client: Client, alice: User, store: Store) -> None:
    """The newest eviction has left a mark on the PodGroup; those before it are known from the history alone."""
    moment = NOW + timedelta(minutes=51)
    stamp = (NOW + timedelta(minutes=50)).isoformat()
    waits = raw.gang("g", pods=3, gpus=8)
    waits[0]["metadata"]["annotations"] = {"kai.scheduler/last-eviction-timestamp": stamp}
    store(raw.cluster(waits), moment)
    tasks.diagnose_due()
    client.force_login(alice)
    found = client.get("/api/v1/gangs/east~gang-team-a-g/explanation").json()
    assert (found["verdict"], found["code"]) == ("EVICTED", "EVICTION_LOOP")
    assert "lost its nodes 3 times in 40 min" in found["sentence"]
