"""/gangs: filters, orders, pages, one gang and what is said of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from rest_framework.test import APIClient

from apps.clusters.models import Cluster
from apps.diagnosis.models import ExplanationRecord
from apps.workloads.models import Gang
from apps.workloads.selectors import ORDERINGS

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("scene")]
BIG = "east~gang-team-a-big"


def names(client: APIClient, query: str = "") -> list[str]:
    """Return ``cluster/namespace/name`` of each gang of a list, in its order."""
    response = client.get(f"/api/v1/gangs?{query}")
    assert response.status_code == 200, response.content
    return [f"{row['cluster']}/{row['namespace']}/{row['name']}" for row in response.json()["results"]]


def test_the_list_has_every_gang_with_both_of_its_times(as_alice: APIClient) -> None:
    rows = as_alice.get("/api/v1/gangs").json()["results"]
    assert len(rows) == 12
    row = next(row for row in rows if row["id"] == BIG)
    assert (row["verdict"], row["code"], row["who"], row["state"]) == (
        "POLICY",
        "QUEUE_LIMIT",
        "cluster_admin",
        "waits",
    )
    assert (row["read_as_of"], row["diagnosed_as_of"]) == ("2026-11-30T09:00:00Z", "2026-11-30T09:00:15Z")
    assert (row["gpus"], row["gpus_waiting"], row["pods_waiting"]) == (8.0, 8.0, 1)


FILTERS = [
    ("cluster=east", 6),
    ("cluster=east&cluster=west", 12),
    ("cluster=north", 0),
    ("namespace=team-b", 6),
    ("queue=q", 6),
    ("queue=q&cluster=west", 3),
    ("verdict=POLICY", 4),
    ("verdict=POLICY&verdict=NO_FIT", 8),
    ("code=RUNNING", 4),
    ("who=cluster_admin&state=waits", 8),
    ("who=nobody", 0),
    ("state=fine", 4),
    ("text=big", 4),
    ("text=team-a+big", 2),
    ("text=a+team-b+runs", 2),
    ("text=%25", 0),
]


def test_filters_narrow_the_list(as_alice: APIClient) -> None:
    assert {query: len(names(as_alice, query)) for query, _count in FILTERS} == dict(FILTERS)


def test_what_no_filter_can_mean_is_refused(as_alice: APIClient) -> None:
    for query in (
        "verdict=PERHAPS",
        "code=",
        "who=me",
        "state=x",
        "ordering=password",
        "text=%00",
        "page_size=x",
        "page_size=0",
    ):
        response = as_alice.get(f"/api/v1/gangs?{query}")
        assert response.status_code == 400
        assert list(response.json()["fields"]) == [query.split("=")[0]]


def test_pages_hold_each_gang_once_in_every_order(as_alice: APIClient) -> None:
    Gang.objects.filter(name="small").update(gpus=None, gpus_waiting=None, created_at=None)
    for ordering in (sign + name for name in ORDERINGS for sign in ("", "-")):
        whole = names(as_alice, f"ordering={ordering}")
        assert paged(as_alice, f"/api/v1/gangs?ordering={ordering}&page_size=5") == whole
        assert len(set(whole)) == 12


def paged(client: APIClient, address: str) -> list[str]:
    """Return what ``names`` does, page by page."""
    found: list[str] = []
    while address:
        page = client.get(address).json()
        found += [f"{row['cluster']}/{row['namespace']}/{row['name']}" for row in page["results"]]
        address = page["next"]
    return found


def test_gangs_without_a_value_come_last(as_alice: APIClient) -> None:
    Gang.objects.filter(name="small").update(gpus=None)
    for ordering in ("waiting_since", "-waiting_since", "gpus", "-gpus"):
        name = ordering.removeprefix("-")
        values = [row[name] for row in as_alice.get(f"/api/v1/gangs?ordering={ordering}").json()["results"]]
        missing = values.count(None)
        assert missing
        assert values[-missing:] == [None] * missing


def test_more_rows_of_one_value_than_a_cursor_counts_are_all_paged(as_alice: APIClient, scene: Any) -> None:
    cluster = scene["east"]
    first = Gang.objects.filter(cluster=cluster).first()
    assert first is not None
    Gang.objects.bulk_create(
        Gang(cluster=cluster, uid=f"u{n}", namespace="x", name=f"g{n}", first_seen_at=first.first_seen_at,
             last_seen_at=first.last_seen_at) for n in range(1300)
    )  # fmt: skip
    assert len(set(paged(as_alice, "/api/v1/gangs?ordering=namespace&namespace=x&page_size=500"))) == 1300


def test_gangs_that_are_gone_or_of_removed_clusters_are_not_listed(as_alice: APIClient, scene: Any) -> None:
    Gang.objects.filter(name="big").update(gone_at="2026-11-30T09:00:00Z")
    Cluster.objects.filter(name="west").update(is_read=False)
    assert set(names(as_alice)) == {
        f"east/{team}/{gang}" for team in ("team-a", "team-b") for gang in ("runs", "small")
    }
    assert as_alice.get(f"/api/v1/gangs/{BIG}").json()["gone_at"] == "2026-11-30T09:00:00Z"


def test_one_gang_has_its_pods(as_alice: APIClient) -> None:
    gang = as_alice.get(f"/api/v1/gangs/{BIG}").json()
    assert [(pod["name"], pod["gpus"], pod["node"]) for pod in gang["pods"]] == [("big", 8.0, "")]


def test_the_explanation_is_the_stored_document_byte_for_byte(as_alice: APIClient) -> None:
    response = as_alice.get(f"/api/v1/gangs/{BIG}/explanation")
    record = ExplanationRecord.objects.get(gang__uid="gang-team-a-big", gang__cluster__name="east", is_current=True)
    assert response.content.decode() == record.document
    assert response["Content-Type"] == "application/json"


def test_an_explanation_of_the_past_is_asked_for_by_its_moment(as_alice: APIClient) -> None:
    then = as_alice.get(f"/api/v1/gangs/{BIG}/explanation?at=2026-11-30T09:00:10Z").json()
    assert then["code"] == "GPUS_BUSY"
    before = as_alice.get(f"/api/v1/gangs/{BIG}/explanation?at=2026-11-30T08:00:00Z")
    assert (before.status_code, before.json()["code"]) == (404, "not_diagnosed")


def test_the_timeline_has_each_reason_with_its_time(as_alice: APIClient) -> None:
    rows = as_alice.get(f"/api/v1/gangs/{BIG}/timeline").json()
    assert [(row["code"], row["opened_at"], row["closed_at"]) for row in rows] == [
        ("GPUS_BUSY", "2026-11-30T09:00:00Z", "2026-11-30T09:00:15Z"),
        ("QUEUE_LIMIT", "2026-11-30T09:00:15Z", None),
    ]


def test_what_is_no_gang_is_not_found(as_alice: APIClient) -> None:
    for gang in ("nothing", "east~", "~x", "east~x~y", "north~gang-team-a-big", "east~%00"):
        for part in ("", "/explanation", "/timeline", "/snapshot"):
            response = as_alice.get(f"/api/v1/gangs/{gang}{part}")
            assert (response.status_code, response.json()["code"]) == (404, "not_found")


def test_an_unchanged_answer_is_not_sent_again(as_alice: APIClient) -> None:
    for path in ("/api/v1/gangs", f"/api/v1/gangs/{BIG}", f"/api/v1/gangs/{BIG}/explanation", "/api/v1/reasons"):
        tag = as_alice.get(path)["ETag"]
        again = as_alice.get(path, headers={"if-none-match": tag})
        assert (again.status_code, again.content) == (304, b"")
    Gang.objects.update(sentence="another")
    tag = as_alice.get("/api/v1/gangs")["ETag"]
    Gang.objects.update(sentence="and another")
    assert as_alice.get("/api/v1/gangs", headers={"if-none-match": tag}).status_code == 200


def test_the_dump_of_a_moment_without_objects_is_gone(as_alice: APIClient) -> None:
    response = as_alice.get(f"/api/v1/gangs/{BIG}/snapshot")
    assert (response.status_code, response.json()["code"]) == (410, "dump_expired")


def test_hidden_names_do_not_change_the_document_of_who_sees_all(as_alice: APIClient, as_bob: APIClient) -> None:
    mine = json.loads(as_bob.get(f"/api/v1/gangs/{BIG}/explanation").content)
    whole = json.loads(as_alice.get(f"/api/v1/gangs/{BIG}/explanation").content)
    assert [holder["gang"] for holder in whole["holders"]] == ["team-b/runs", "team-a/runs"]
    assert [holder["gang"] for holder in mine["holders"]] == ["something in another namespace", "team-a/runs"]
    assert mine["sentence"] == "Held by something in another namespace, QUEUE_LIMIT."
    for path in (f"/api/v1/gangs/{BIG}", "/api/v1/gangs", f"/api/v1/gangs/{BIG}/timeline"):
        assert "team-b" not in as_bob.get(path).content.decode()
        assert "team-b" in as_alice.get(path).content.decode()
    assert as_bob.get("/api/v1/gangs?text=team-b").json()["results"] == []
    assert {**mine, "holders": 0, "sentence": 0} == {**whole, "holders": 0, "sentence": 0}


def test_a_gang_names_its_page_with_the_servers_own_address(as_alice: APIClient, settings: Any) -> None:
    for base in ("", "https://gangdash.example"):
        settings.GANGDASH_BASE_URL = base
        page = as_alice.get(f"/api/v1/gangs/{BIG}").json()["page"]
        assert page == f"{base}/clusters/east/gangs/team-a/big/"
