"""Workloads at any kept moment: on their page, in the list, over REST; bounded like all history."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client
from pytest_django import Settings

from apps.accounts.models import User
from apps.chains import moments
from apps.chains.models import TopMoment
from apps.chains.services import chains_record
from apps.clusters.models import Cluster
from apps.collector.rows import found_rows
from apps.collector.sync import rows_sync
from tests.chain import world as w

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
PAGE = "/clusters/east/deployments/DynamoGraphDeployment/team/llm/"
REST = "/api/v1/deployments/east~DynamoGraphDeployment-llm"


def at(minutes: float) -> datetime:
    return NOW + timedelta(minutes=minutes)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster.objects.create(name="east", source="folder", read_as_of=NOW)


def read(cluster: Cluster, minutes: float, *objects: w.Object) -> None:
    snapshot = w.snapshot(*objects)
    rows_sync(cluster=cluster, found=found_rows(snapshot), now=at(minutes))
    chains_record(cluster=cluster, snapshot=snapshot, as_of=at(minutes))


@pytest.fixture
def past(cluster: Cluster) -> Cluster:
    """Let the workload have no status at minute 0, be handed over at minute 10, and be gone at minute 20."""
    read(cluster, 0, w.graph(state="", age=600))
    read(cluster, 10, *w.served())
    read(cluster, 15, *w.served())
    read(cluster, 20, w.graph("other"))
    return cluster


def get(client: Client, path: str, minutes: float | None = None) -> Any:
    return client.get(path if minutes is None else f"{path}?{urlencode({'at': at(minutes).isoformat()})}")


def test_a_moment_lasts_until_something_changes(past: Cluster) -> None:
    rows = TopMoment.objects.filter(name="llm").values_list("since", "until", "facts__stage")
    assert list(rows) == [(at(0), at(10), "S2"), (at(10), at(20), "")]
    assert list(TopMoment.objects.filter(until=None).values_list("name", flat=True)) == ["other"]


def test_the_page_is_pinned_to_how_it_stood(past: Cluster, client: Client, alice: User) -> None:
    client.force_login(alice)
    first, second = get(client, PAGE, 3).content.decode(), get(client, PAGE, 12).content.decode()
    assert "llm: Operator has not looked at it" in first
    assert "llm: handed to the scheduler" in second
    assert "Back to live" in first
    assert f'href="{PAGE}?at=2026-11-30T09%3A00%3A00Z"' in second
    assert [get(client, PAGE, minutes).status_code for minutes in (-1, 25, None)] == [404, 404, 404]


def test_the_list_is_pinned_and_keeps_the_moment(past: Cluster, client: Client, alice: User) -> None:
    client.force_login(alice)
    then = get(client, "/deployments/", 3).content.decode()
    assert "1 of 1 workload stands before the scheduler" in then
    assert f'href="{PAGE}?at=2026-11-30T09%3A03%3A00Z"' in then
    assert "other" not in then
    assert "other" in get(client, "/deployments/").content.decode()


def test_rest_is_pinned_too(past: Cluster, client: Client, alice: User) -> None:
    client.force_login(alice)
    assert [row["name"] for row in get(client, "/api/v1/deployments", 3).json()["results"]] == ["llm"]
    assert [row["name"] for row in get(client, "/api/v1/deployments", 21).json()["results"]] == ["other"]
    assert get(client, REST, 3).json()["stage"] == "S2"
    found = get(client, REST, 12).json()
    assert (found["stage"], found["gangs"][0]["podgroups"]) == ("", ["pg-llm-0"])
    assert get(client, REST, 25).status_code == 404


def test_the_timeline_says_when_each_stage_was_left(cluster: Cluster, client: Client, alice: User) -> None:
    read(cluster, 0, w.graph(state="", age=600))
    read(cluster, 10, *w.served())
    client.force_login(alice)
    rows = get(client, f"{REST}/timeline").json()
    assert [(row["since"], row["until"], row["stage"]) for row in rows] == [
        ("2026-11-30T09:00:00Z", "2026-11-30T09:10:00Z", "S2"),
        ("2026-11-30T09:10:00Z", None, ""),
    ]


def test_bob_sees_no_past_of_others(past: Cluster, client: Client, bob: User) -> None:
    client.force_login(bob)
    assert get(client, PAGE, 3).status_code == 404
    assert get(client, REST, 3).status_code == 404
    assert get(client, "/api/v1/deployments", 3).json()["results"] == []


def test_of_old_moments_one_an_hour_stays_and_lasts_on(cluster: Cluster) -> None:
    for minutes in range(0, 120, 20):
        read(cluster, minutes, w.graph("llm", state="pending" if minutes % 40 else "", age=600))
    moments.moments_prune(now=NOW + timedelta(days=2))
    rows = TopMoment.objects.order_by("since").values_list("since", "until")
    assert list(rows) == [(at(0), at(60)), (at(60), at(100)), (at(100), None)]


def test_moments_have_an_age_and_a_number(
    cluster: Cluster, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.GANGDASH_KEEP_HISTORY_DAYS = 30
    for hours in range(5):
        read(cluster, 60 * hours, w.graph("llm", state="pending" if hours % 2 else "", age=600))
    monkeypatch.setattr(moments, "MOMENTS_MAX", 3)
    assert moments.moments_prune(now=NOW + timedelta(days=2)) == 1
    assert moments.moments_prune(now=NOW + timedelta(days=40)) == 3
    assert TopMoment.objects.get().until is None, "how it stands now stays"
