"""Workloads, checks and the way from any object to its gang, over REST."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from rest_framework.test import APIClient

from apps.accounts.models import NamespaceGrant, User
from apps.chains.services import chains_record
from apps.checks.services import checks_record
from apps.clusters.models import Cluster
from apps.collector.rows import found_rows
from apps.collector.sync import rows_sync
from tests.chain import world as w

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
TOP = "east~DynamoGraphDeployment-llm"


@pytest.fixture(autouse=True)
def cluster() -> Cluster:
    made = Cluster.objects.create(name="east", source="folder", read_as_of=NOW)
    snapshot = w.snapshot(*w.served(), w.graph("new", state="", age=600))
    rows_sync(cluster=made, found=found_rows(snapshot), now=NOW)
    chains_record(cluster=made, snapshot=snapshot, as_of=NOW)
    checks_record(cluster=made, snapshot=snapshot, as_of=NOW)
    return made


def _get(client: APIClient, path: str, status: int = 200) -> Any:
    response = client.get(f"/api/v1/{path}")
    assert response.status_code == status, response.content
    return response.json()


def test_deployments_are_listed_with_their_stage(as_alice: APIClient) -> None:
    rows = _get(as_alice, "deployments")["results"]

    assert [(row["name"], row["stage"], row["is_overdue"]) for row in rows] == [("llm", "", False), ("new", "S2", True)]
    assert [row["name"] for row in _get(as_alice, "deployments?text=ne")["results"]] == ["new"]
    assert _get(as_alice, "deployments?namespace=other")["results"] == []
    page = _get(as_alice, "deployments?page_size=1")
    assert len(page["results"]) == 1
    assert page["next"]


def test_a_deployment_has_its_ladder(as_alice: APIClient) -> None:
    found = _get(as_alice, f"deployments/{TOP}")

    assert [layer["kind"] for layer in found["components"][0]["layers"]][-1] == "Pod"
    assert found["gangs"] == [{"podgang": "llm-0", "bases": [], "podgroups": ["pg-llm-0"], "stage": "", "problem": ""}]
    assert found["remarks"] == []


@pytest.mark.parametrize("kind,name", [("PodClique", "llm-0-decode"), ("Pod", "llm-0-decode-0"), ("PodGang", "llm-0")])
def test_any_object_resolves_to_its_gang_and_explanation(as_alice: APIClient, kind: str, name: str) -> None:
    found = _get(as_alice, f"resolve?cluster=east&kind={kind}&namespace=team&name={name}")

    assert [gang["name"] for gang in found["gangs"]] == ["pg-llm-0"]
    assert found["explanations"] == [f"/api/v1/gangs/{found['gangs'][0]['id']}/explanation"]
    assert found["deployment"] == TOP


def test_the_cluster_may_be_left_out_where_there_is_one(as_alice: APIClient) -> None:
    assert _get(as_alice, "resolve?kind=PodGang&namespace=team&name=llm-0")["deployment"] == TOP
    Cluster.objects.create(name="west", source="folder")
    assert _get(as_alice, "resolve?kind=PodGang&namespace=team&name=llm-0", 400)["code"] == "cluster_needed"


def test_what_does_not_resolve_is_said(as_alice: APIClient) -> None:
    assert _get(as_alice, "resolve?cluster=east&kind=Pod&namespace=team&name=nobody", 404)["code"] == "not_found"
    assert "kind" in _get(as_alice, "resolve?cluster=east&namespace=team&name=x", 400)["fields"]
    assert _get(as_alice, "deployments/east~nobody", 404)["code"] == "not_found"


def test_checks_come_with_evidence_and_remedy(as_alice: APIClient) -> None:
    rows = _get(as_alice, "checks?cluster=east&state=fail")["results"]

    queue = next(row for row in rows if row["id"] == "C17")
    assert queue["severity"] == "critical"
    assert "names queue q, which does not exist" in queue["evidence"]
    assert queue["objects"] == ["PodGroup/team/pg-llm-0"]
    assert queue["remedy"]
    assert len(_get(as_alice, "checks")["results"]) == 42


def test_others_see_nothing_of_it(as_bob: APIClient, bob: User) -> None:
    assert _get(as_bob, "deployments")["results"] == []
    assert _get(as_bob, "checks")["results"] == []
    _get(as_bob, f"deployments/{TOP}", 404)
    _get(as_bob, f"deployments/{TOP}/timeline", 404)
    _get(as_bob, "resolve?cluster=east&kind=PodGang&namespace=team&name=llm-0", 404)
    NamespaceGrant.objects.create(user=bob, cluster="east", namespace="team")
    assert [row["name"] for row in _get(as_bob, "deployments")["results"]] == ["llm", "new"]
    assert [row["stage"] for row in _get(as_bob, f"deployments/{TOP}/timeline")] == [""]
    assert _get(as_bob, "checks")["results"] == []


@pytest.mark.parametrize(
    "path",
    ["deployments", f"deployments/{TOP}", f"deployments/{TOP}/timeline", "checks", "resolve?kind=a&namespace=b&name=c"],
)
def test_nobody_gets_in_without_a_login(path: str) -> None:
    assert APIClient().get(f"/api/v1/{path}").status_code == 401
