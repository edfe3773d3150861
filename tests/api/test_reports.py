"""/reports and /report-schedules: what is listed, asked for and handed out, and to whom."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from apps.accounts.choices import Role, TokenScope
from apps.accounts.models import User
from apps.accounts.services import token_create
from apps.clusters.models import Cluster
from apps.delivery.choices import ChannelKind
from apps.delivery.models import Channel
from apps.reports.choices import ReportState
from apps.reports.content import content_encode
from apps.reports.models import Report, ReportSchedule
from apps.reports.renderers.document import report_schema
from tests.api.conftest import asking
from tests.api.test_access import bearer
from tests.apps.reports import samples

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("scene")]
PLAN = {"name": "Daily", "at": "08:00", "zone": "Europe/Berlin", "clusters": ["east"], "attached": ["md"]}


def kept(**values: Any) -> Report:
    said = samples.content()
    given = {
        "cluster": Cluster.objects.get(name="east"),
        "title": "On demand",
        "start": said.start,
        "end": said.end,
        "state": ReportState.DONE,
        "content": content_encode(said).decode(),
        "headline": said.headline[0],
        **values,
    }
    return Report.objects.create(**given)


@pytest.fixture
def as_viewer() -> APIClient:
    return asking(User.objects.create_user("viewer", role=Role.VIEWER))


@pytest.fixture
def channel() -> Channel:
    return Channel.objects.create(name="gpu-admins", kind=ChannelKind.EMAIL, recipients=["gpu@example.org"])


def test_the_list_is_newest_first_filtered_and_without_content(as_alice: APIClient) -> None:
    first = kept()
    second = kept(end=samples.END.replace(hour=9), state=ReportState.FAILED)
    rows = as_alice.get("/api/v1/reports").json()["results"]
    assert [row["id"] for row in rows] == [second.pk, first.pk]
    assert "content" not in rows[0]
    for query, found in (("state=done", 1), ("cluster=west", 0), ("schedule=-", 2), ("schedule=Daily", 0)):
        assert len(as_alice.get(f"/api/v1/reports?{query}").json()["results"]) == found
    assert as_alice.get("/api/v1/reports?state=odd").status_code == 400


def test_pages_of_the_list_join(as_alice: APIClient) -> None:
    ids = [kept().pk for _ in range(5)]
    found, address = [], "/api/v1/reports?page_size=2"
    while address:
        page = as_alice.get(address).json()
        found += [row["id"] for row in page["results"]]
        address = page["next"]
    assert sorted(found) == ids


def test_one_report_carries_its_content_in_the_published_form(as_alice: APIClient) -> None:
    report = kept()
    body = as_alice.get(f"/api/v1/reports/{report.pk}").json()
    assert set(body["content"]) == set(report_schema()["$defs"]["Content"]["properties"])
    assert body["content"]["sections"][0]["sentences"][0] == body["headline"]
    Report.objects.update(state=ReportState.WAITING)
    assert as_alice.get(f"/api/v1/reports/{report.pk}").json()["content"] is None


@pytest.mark.parametrize(
    "form, begins", [("html", b"<!doctype html>"), ("md", b"# "), ("json", b"{"), ("csv", b"cluster,")]
)
def test_files(as_alice: APIClient, form: str, begins: bytes) -> None:
    answer = as_alice.get(f"/api/v1/reports/{kept().pk}/files/{form}")
    assert answer.status_code == 200
    assert answer.content.startswith(begins)
    assert answer["Content-Disposition"].endswith(f'.{form}"')
    assert b"http://testserver/clusters/fjord-1/" in answer.content


def test_files_that_are_not_there(as_alice: APIClient) -> None:
    report = kept()
    assert as_alice.get(f"/api/v1/reports/{report.pk}/files/pdf").json()["code"] == "report_form_unknown"
    Report.objects.update(content="{}")
    answer = as_alice.get(f"/api/v1/reports/{report.pk}/files/csv")
    assert (answer.status_code, answer.json()["code"]) == (410, "report_not_readable")
    Report.objects.update(state=ReportState.WAITING)
    answer = as_alice.get(f"/api/v1/reports/{report.pk}/files/csv")
    assert (answer.status_code, answer.json()["code"]) == (404, "report_not_made")


def test_a_report_is_asked_for_and_found_under_its_address(as_viewer: APIClient) -> None:
    answer = as_viewer.post("/api/v1/reports", {"cluster": "east", "range": "7d", "zone": "Asia/Tokyo"}, format="json")
    assert answer.status_code == 202
    assert (answer.json()["state"], answer.json()["requested_by"]) == ("waiting", "viewer")
    assert as_viewer.get(answer["Location"]).json()["id"] == answer.json()["id"]


@pytest.mark.parametrize(
    "wish, status, code",
    [
        ({"cluster": "east", "range": "yesterday"}, 400, "range_not_valid"),
        ({"cluster": "east", "zone": "Mars"}, 400, "invalid"),
        ({"cluster": "nowhere"}, 404, "not_found"),
        ({"cluster": "a\x00b"}, 400, "invalid"),
        ({}, 400, "invalid"),
    ],
)
def test_wishes_that_make_no_report(as_alice: APIClient, wish: dict[str, str], status: int, code: str) -> None:
    answer = as_alice.post("/api/v1/reports", wish, format="json")
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert not Report.objects.exists()


def test_nobody_asks_without_end(as_alice: APIClient) -> None:
    answers = [as_alice.post("/api/v1/reports", {"cluster": "east"}, format="json") for _ in range(4)]
    assert [answer.status_code for answer in answers] == [202, 202, 202, 429]
    assert answers[3].json()["code"] == "too_many_reports"


def test_bob_finds_no_report_and_makes_none(as_bob: APIClient) -> None:
    report = kept()
    assert as_bob.get("/api/v1/reports").json()["results"] == []
    assert as_bob.get(f"/api/v1/reports/{report.pk}").status_code == 404
    assert as_bob.get(f"/api/v1/reports/{report.pk}/files/csv").status_code == 404
    answer = as_bob.post("/api/v1/reports", {"cluster": "east"}, format="json")
    assert (answer.status_code, answer.json()["code"]) == (403, "whole_view_needed")


def test_a_token_reads_with_one_scope_and_asks_with_the_other(alice: User) -> None:
    kept()
    reads = bearer(token_create(user=alice, name="r", scopes=[TokenScope.READ]).text)
    asks = bearer(token_create(user=alice, name="d", scopes=[TokenScope.READ, TokenScope.DIAGNOSE]).text)
    assert reads.get("/api/v1/reports").status_code == 200
    assert reads.post("/api/v1/reports", {"cluster": "east"}, format="json").status_code == 403
    assert asks.post("/api/v1/reports", {"cluster": "east"}, format="json").status_code == 202


def test_a_schedule_is_made_read_changed_and_removed(as_alice: APIClient, channel: Channel) -> None:
    made = as_alice.post("/api/v1/report-schedules", {**PLAN, "channels": ["gpu-admins"]}, format="json")
    assert made.status_code == 201
    body = made.json()
    assert (body["at"], body["clusters"], body["channels"], body["weekday"]) == ("08:00", ["east"], ["gpu-admins"], 0)
    assert body["next_due"]
    address = f"/api/v1/report-schedules/{body['id']}"
    assert as_alice.get("/api/v1/report-schedules").json()["results"][0]["name"] == "Daily"
    changed = as_alice.put(address, {**PLAN, "name": "Off", "is_enabled": False}, format="json").json()
    assert (changed["name"], changed["channels"], changed["next_due"]) == ("Off", [], None)
    assert as_alice.delete(address).status_code == 204
    assert as_alice.get(address).status_code == 404


@pytest.mark.parametrize(
    "change, status, code",
    [
        ({"zone": "Mars"}, 400, "schedule_not_valid"),
        ({"clusters": ["nowhere"]}, 400, "invalid"),
        ({"channels": ["a\x00b"]}, 400, "invalid"),
        ({"at": "25:00"}, 400, "invalid"),
        ({"weekday": 7}, 400, "invalid"),
        ({"attached": ["pdf"]}, 400, "invalid"),
    ],
)
def test_plans_that_cannot_be_followed(as_alice: APIClient, change: dict[str, Any], status: int, code: str) -> None:
    answer = as_alice.post("/api/v1/report-schedules", {**PLAN, **change}, format="json")
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert not ReportSchedule.objects.exists()


def test_a_name_is_taken_once(as_alice: APIClient) -> None:
    answers = [as_alice.post("/api/v1/report-schedules", PLAN, format="json") for _ in range(2)]
    assert [(a.status_code, a.json().get("code")) for a in answers] == [(201, None), (409, "schedule_name_taken")]


def test_only_an_admin_in_person_changes_schedules(
    as_alice: APIClient, as_viewer: APIClient, as_bob: APIClient, alice: User
) -> None:
    number = as_alice.post("/api/v1/report-schedules", PLAN, format="json").json()["id"]
    token = bearer(token_create(user=alice, name="t", scopes=list(TokenScope)).text)
    assert token.get("/api/v1/report-schedules").json()["results"]
    for client, code in ((as_viewer, "permission_denied"), (as_bob, "permission_denied"), (token, "login_required")):
        answers = [
            client.post("/api/v1/report-schedules", {**PLAN, "name": "New"}, format="json"),
            client.put(f"/api/v1/report-schedules/{number}", PLAN, format="json"),
            client.delete(f"/api/v1/report-schedules/{number}"),
        ]
        assert [(a.status_code, a.json()["code"]) for a in answers] == [(403, code)] * 3
    assert as_bob.get("/api/v1/report-schedules").json()["results"] == []
    assert as_bob.get(f"/api/v1/report-schedules/{number}").status_code == 404
    assert ReportSchedule.objects.count() == 1
