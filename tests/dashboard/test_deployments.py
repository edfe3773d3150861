"""Workload and check pages: what they say, in every state, and how many queries they take."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from apps.accounts.models import NamespaceGrant, User
from apps.chains.services import chains_record
from apps.checks.services import checks_record
from apps.clusters.models import Cluster
from apps.collector.rows import found_rows
from apps.collector.sync import rows_sync
from gangdash.engine.model.cluster import ClusterSnapshot
from tests.chain import world as w
from tests.dashboard.markup import visible_text

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster.objects.create(name="east", source="folder", read_as_of=NOW)


def _store(cluster: Cluster, *objects: w.Object, **more: Any) -> ClusterSnapshot:
    snapshot = w.snapshot(*objects, **more)
    rows_sync(cluster=cluster, found=found_rows(snapshot), now=NOW)
    chains_record(cluster=cluster, snapshot=snapshot, as_of=NOW)
    checks_record(cluster=cluster, snapshot=snapshot, as_of=NOW)
    return snapshot


def _text(client: Client, name: str, *args: str) -> str:
    answer = client.get(reverse(f"dashboard:{name}", args=args))
    assert answer.status_code == 200
    return visible_text(answer.content)


TOP = ("east", "DynamoGraphDeployment", "team", "llm")


def test_list_says_who_stands_where(cluster: Cluster, as_alice: Client) -> None:
    _store(cluster, *w.served(), w.graph("new", state="", age=600))
    text = _text(as_alice, "deployments")

    assert "1 of 2 workloads stands before the scheduler" in text
    assert "1 step overdue" in text
    assert "Dynamo's operator" in text
    assert "it has no status at all" in text


def test_page_shows_every_layer_and_no_zero_for_what_nobody_states(cluster: Cluster, as_alice: Client) -> None:
    _store(cluster, *w.served())
    text = _text(as_alice, "deployment", *TOP)

    assert "llm: handed to the scheduler" in text
    for layer in ("DynamoGraphDeployment", "PodCliqueSet", "PodClique", "PodGang", "PodGroup", "Pod"):
        assert layer in text
    assert "PodClique llm-0-decode 2 — — — —" in text
    assert "Not diagnosed yet" in text


def test_page_of_a_workload_that_stands_says_whose_turn_it_is(cluster: Cluster, as_alice: Client) -> None:
    top = w.graph()
    _store(cluster, top, w.clique_set(top))
    text = _text(as_alice, "deployment", *TOP)

    assert "llm: PodCliqueSet not taken up" in text
    assert "S5, Grove's operator has the next step" in text
    assert "This takes longer than it should" in text
    assert "No PodGang was made of it" in text


def test_workload_of_others_is_not_there(cluster: Cluster, as_bob: Client, as_alice: Client) -> None:
    _store(cluster, *w.served())
    bob = User.objects.get(username="bob")
    NamespaceGrant.objects.create(user=bob, cluster="east", namespace="other")

    assert as_bob.get(reverse("dashboard:deployment", args=TOP)).status_code == 404
    assert "llm" not in _text(as_bob, "deployments")
    assert as_alice.get(reverse("dashboard:deployment", args=("east", "x", "y", "z"))).status_code == 404


def test_checks_say_what_fails_and_what_to_do(cluster: Cluster, as_alice: Client) -> None:
    _store(cluster, *w.served())
    text = _text(as_alice, "checks")

    assert "fail" in text.lower()
    assert "PodGroup team/pg-llm-0 names queue q, which does not exist" in text
    assert "Create the queue as a leaf" in text
    assert "cannot be told" in text


def test_checks_are_not_for_those_who_see_a_part(cluster: Cluster, as_bob: Client) -> None:
    _store(cluster, *w.served())
    NamespaceGrant.objects.create(user=User.objects.get(username="bob"), cluster="east", namespace="team")
    text = _text(as_bob, "checks")

    assert "Checks are for those who see the whole cluster" in text
    assert "pg-llm-0" not in text


def test_empty_store_has_pages(as_alice: Client) -> None:
    assert "No Dynamo or Grove workload" in _text(as_alice, "deployments")
    assert "No check has run yet" in _text(as_alice, "checks")


@pytest.mark.parametrize("path,count", [("/deployments/", 6), ("/checks/", 6), (f"/clusters/{'/'.join(TOP)}/", 0)])
def test_queries_do_not_grow_with_rows(
    cluster: Cluster,
    as_alice: Client,
    django_assert_num_queries: DjangoAssertNumQueries,
    path: str,
    count: int,
) -> None:
    if not count:
        path, count = reverse("dashboard:deployment", args=TOP), 7
    many = [w.graph(f"more-{i}", state="", age=600) for i in range(12)]
    _store(cluster, *w.served(), *many)
    as_alice.get(path)
    with django_assert_num_queries(count):
        assert as_alice.get(path).status_code == 200
