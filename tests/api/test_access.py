"""Who gets in, with what, and what they see: every route, Alice, Bob, nobody, and tokens."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from rest_framework.test import APIClient
from rest_framework.throttling import SimpleRateThrottle

from apps.accounts.choices import TokenScope
from apps.accounts.models import ApiToken, User
from apps.accounts.services import token_create, token_revoke
from tests.api.conftest import asking

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("scene")]
OWN, OTHERS = "east~gang-team-a-big", "east~gang-team-b-big"
READS = [
    "/api/v1/clusters",
    "/api/v1/clusters/east/health",
    "/api/v1/clusters/east/changes",
    "/api/v1/clusters/east/capacity",
    "/api/v1/loops",
    "/api/v1/gangs",
    f"/api/v1/gangs/{OWN}",
    f"/api/v1/gangs/{OWN}/explanation",
    f"/api/v1/gangs/{OWN}/timeline",
    f"/api/v1/gangs/{OWN}/attempts",
    "/api/v1/deployments",
    "/api/v1/checks",
    "/api/v1/alerts/instances",
    "/api/v1/alerts/rules",
    "/api/v1/alerts/routes",
    "/api/v1/alerts/mutes",
    "/api/v1/objectives",
    "/api/v1/reports",
    "/api/v1/report-schedules",
    "/api/v1/reasons",
    "/api/v1/reasons/QUEUE_LIMIT",
    "/api/v1/schema",
]
PRIVATE = ["/api/v1/tokens", "/api/v1/diagnose/5a0c0b34-2c1e-4a6a-9e2a-3a6f0f1f5c11"]


def bearer(text: str) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {text}")
    return client


def test_nobody_gets_in_without_a_login() -> None:
    for path in (*READS, f"/api/v1/gangs/{OWN}/snapshot", "/api/v1/clusters/east/snapshot", *PRIVATE):
        response = asking(None).get(path)
        assert (response.status_code, response.json()["code"]) == (401, "not_authenticated")
        assert response["WWW-Authenticate"] == "Bearer"


def test_nothing_can_be_handed_in_without_a_login() -> None:
    response = asking(None).post("/api/v1/diagnose", b"{}", content_type="application/json")
    assert response.status_code == 401


def test_alice_and_bob_may_read(as_alice: APIClient, as_bob: APIClient) -> None:
    for path in READS:
        assert as_alice.get(path).status_code == 200
        assert as_bob.get(path).status_code == 200


def test_bob_does_not_learn_that_a_gang_of_others_exists(as_bob: APIClient, as_alice: APIClient) -> None:
    for part in ("", "/explanation", "/timeline", "/attempts", "/snapshot"):
        there = as_bob.get(f"/api/v1/gangs/{OTHERS}{part}")
        nowhere = as_bob.get(f"/api/v1/gangs/east~no-such-gang{part}")
        assert there.status_code == nowhere.status_code == 404
        assert there.json() == nowhere.json()
        assert as_alice.get(f"/api/v1/gangs/{OTHERS}{part}").status_code != 404


def test_bob_sees_his_namespace_of_his_cluster_only(as_bob: APIClient, as_alice: APIClient) -> None:
    rows = as_bob.get("/api/v1/gangs").json()["results"]
    assert {(row["cluster"], row["namespace"]) for row in rows} == {("east", "team-a")}
    assert as_bob.get("/api/v1/gangs?namespace=team-b").json()["results"] == []
    assert [row["name"] for row in as_bob.get("/api/v1/clusters").json()["results"]] == ["east"]
    assert as_bob.get("/api/v1/clusters/west/health").status_code == 404
    assert len(as_alice.get("/api/v1/clusters").json()["results"]) == 2


def test_the_objects_of_a_cluster_are_for_those_who_see_all_of_it(as_bob: APIClient) -> None:
    response = as_bob.get(f"/api/v1/gangs/{OWN}/snapshot")
    assert (response.status_code, response.json()["code"]) == (403, "whole_view_needed")


def test_a_grant_that_ends_ends_at_once(as_bob: APIClient, bob: User) -> None:
    bob.grants.all().delete()
    assert as_bob.get("/api/v1/gangs").json()["results"] == []
    assert as_bob.get(f"/api/v1/gangs/{OWN}").status_code == 404


def test_a_one_time_password_opens_nothing_before_it_is_changed(as_alice: APIClient, alice: User) -> None:
    User.objects.update(must_change_password=True)
    response = as_alice.get("/api/v1/gangs")
    assert (response.status_code, response.json()["code"]) == (403, "password_change_required")


def test_a_token_reads_what_its_owner_may(bob: User) -> None:
    client = bearer(token_create(user=bob, name="ci").text)
    rows = client.get("/api/v1/gangs").json()["results"]
    assert {row["namespace"] for row in rows} == {"team-a"}
    assert client.get(f"/api/v1/gangs/{OTHERS}").status_code == 404


@pytest.mark.parametrize("text", ["", "gd_wrong", "a b c", "\u00e4"])
def test_what_is_no_token_is_refused_even_beside_a_session(text: str, alice: User) -> None:
    client = APIClient()
    client.force_login(alice)
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {text}")
    response = client.get("/api/v1/gangs")
    assert (response.status_code, response.json()["code"]) == (401, "token_not_valid")


def test_revoked_and_expired_tokens_are_refused(alice: User) -> None:
    revoked, expired = token_create(user=alice, name="a"), token_create(user=alice, name="b")
    token_revoke(user=alice, token_id=revoked.token.pk)
    ApiToken.objects.filter(pk=expired.token.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    assert bearer(revoked.text).get("/api/v1/gangs").status_code == 401
    assert bearer(expired.text).get("/api/v1/gangs").status_code == 401


@pytest.mark.parametrize(
    "scopes, reads, diagnoses", [([TokenScope.READ], 200, 403), ([TokenScope.DIAGNOSE], 403, 400), ([], 403, 403)]
)
def test_a_token_does_no_more_than_its_scopes(
    alice: User, scopes: list[TokenScope], reads: int, diagnoses: int
) -> None:
    client = bearer(token_create(user=alice, name="ci", scopes=scopes).text)
    assert client.get("/api/v1/gangs").status_code == reads
    response = client.post("/api/v1/diagnose", b"no snapshot", content_type="application/octet-stream")
    assert response.status_code == diagnoses


def test_tokens_cannot_make_list_or_end_tokens(alice: User) -> None:
    new = token_create(user=alice, name="ci", scopes=list(TokenScope))
    client = bearer(new.text)
    answers = [
        client.get("/api/v1/tokens"),
        client.post("/api/v1/tokens", {"name": "more"}, format="json"),
        client.delete(f"/api/v1/tokens/{new.token.pk}"),
    ]
    assert [(a.status_code, a.json()["code"]) for a in answers] == [(403, "login_required")] * 3
    assert ApiToken.objects.filter(revoked_at=None).count() == 1


def test_a_session_needs_its_csrf_token_to_change_something(alice: User) -> None:
    client = APIClient(enforce_csrf_checks=True)
    client.force_login(alice)
    response = client.post("/api/v1/tokens", {"name": "ci"}, format="json")
    assert response.status_code == 403
    assert not ApiToken.objects.exists()


def test_a_token_is_made_shown_once_and_ended(as_alice: APIClient, as_bob: APIClient, alice: User) -> None:
    made = as_alice.post("/api/v1/tokens", {"name": "ci", "scopes": ["read"]}, format="json")
    assert made.status_code == 201
    assert "no-cache" in made["Cache-Control"]
    assert bearer(made.json()["text"]).get("/api/v1/gangs").status_code == 200
    listed = as_alice.get("/api/v1/tokens").json()["results"]
    assert [(row["name"], row["scopes"], row.get("text")) for row in listed] == [("ci", ["read"], None)]
    assert as_bob.delete(f"/api/v1/tokens/{made.json()['id']}").status_code == 404
    assert as_alice.delete(f"/api/v1/tokens/{made.json()['id']}").status_code == 204
    assert as_alice.get("/api/v1/tokens").json()["results"] == []
    assert bearer(made.json()["text"]).get("/api/v1/gangs").status_code == 401


def test_a_name_is_given_to_one_token_at_a_time(as_alice: APIClient) -> None:
    as_alice.post("/api/v1/tokens", {"name": "ci"}, format="json")
    again = as_alice.post("/api/v1/tokens", {"name": "ci"}, format="json")
    assert (again.status_code, again.json()["code"]) == (409, "token_name_taken")


def test_who_asks_too_often_is_told_when_to_come_again(
    as_alice: APIClient, as_bob: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SimpleRateThrottle, "THROTTLE_RATES", {"anon": "1/min", "user": "3/min", "diagnose": "1/min"})
    answers = [as_alice.get("/api/v1/reasons") for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert answers[-1].json()["code"] == "throttled"
    assert 0 < int(answers[-1]["Retry-After"]) <= 60
    assert as_bob.get("/api/v1/reasons").status_code == 200
    uploads = [as_bob.post("/api/v1/diagnose", b"x", content_type="application/octet-stream") for _ in range(2)]
    assert [answer.status_code for answer in uploads] == [400, 429]


def test_the_audit_record_is_for_admins_who_are_logged_in(as_alice: APIClient, as_bob: APIClient, alice: User) -> None:
    token = token_create(user=alice, name="ci")
    token_revoke(user=alice, token_id=token.token.pk)
    rows = as_alice.get("/api/v1/audit").json()["results"]
    assert [(row["action"], row["actor"]) for row in rows][:2] == [("token.revoke", "alice"), ("token.create", "alice")]
    assert [row["target"] for row in as_alice.get("/api/v1/audit?action=token.create").json()["results"]] == ["ci"]
    page = as_alice.get("/api/v1/audit?page_size=1").json()
    assert as_alice.get(page["next"]).json()["results"][0]["action"] == "token.create"
    assert as_bob.get("/api/v1/audit").status_code == 403
    other = token_create(user=alice, name="all", scopes=list(TokenScope))
    assert bearer(other.text).get("/api/v1/audit").json()["code"] == "login_required"
