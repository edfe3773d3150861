"""Alerts over REST: who sees what, what a person may change and a token may not, and a look back before saving."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from rest_framework.test import APIClient

from apps.accounts.choices import TokenScope
from apps.accounts.models import AuditEntry, User
from apps.accounts.services import token_create
from apps.alerts.models import Alert, AlertClock, AlertGang, AlertRule, Mute, Route
from apps.clusters.models import Cluster
from apps.delivery.models import Channel
from apps.workloads.models import Gang
from tests.api.conftest import NOW, asking
from tests.api.test_access import bearer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("scene")]
RULES = "/api/v1/alerts/rules"
INSTANCES = "/api/v1/alerts/instances"


def fire(namespaces: list[str], *, cluster: str = "east", **fields: Any) -> Alert:
    """Add an alert about the gang big of some namespaces."""
    gangs = list(Gang.objects.filter(cluster__name=cluster, name="big", namespace__in=namespaces).order_by("pk"))
    standard = {
        "signature": "POLICY|QUEUE_LIMIT|Queue/q", "state": "firing", "severity": "ticket", "title": "2 gangs wait",
        "text": "Held by team-b/runs.", "since": NOW, "fired_at": NOW, "gang_count": len(gangs), "thread": "t",
    }  # fmt: skip
    rule = AlertRule.objects.get(key="never_fits")
    alert = Alert.objects.create(cluster=Cluster.objects.get(name=cluster), rule=rule, **(standard | fields))
    AlertGang.objects.bulk_create(AlertGang(alert=alert, gang=gang, joined_at=NOW) for gang in gangs)
    return alert


def results(client: APIClient, path: str) -> list[dict[str, Any]]:
    response = client.get(path)
    assert response.status_code == 200, response.json()
    found: list[dict[str, Any]] = response.json()["results"]
    return found


def test_alerts_are_listed_newest_first_with_filters(as_alice: APIClient) -> None:
    fire(["team-a"])
    fire(["team-a"], signature="x", since=NOW + timedelta(minutes=1), state="resolved", resolved_at=NOW)
    fire([], cluster="west", signature="y", since=NOW + timedelta(minutes=2))
    fire([], signature="z", state="pending", fired_at=None)
    assert [row["signature"] for row in results(as_alice, INSTANCES)] == ["y", "x", "POLICY|QUEUE_LIMIT|Queue/q"]
    assert [row["signature"] for row in results(as_alice, f"{INSTANCES}?state=pending")] == ["z"]
    assert [row["signature"] for row in results(as_alice, f"{INSTANCES}?cluster=west")] == ["y"]
    assert results(as_alice, f"{INSTANCES}?rule=blind") == []
    page = as_alice.get(f"{INSTANCES}?page_size=2").json()
    assert [row["signature"] for row in as_alice.get(page["next"]).json()["results"]] == ["POLICY|QUEUE_LIMIT|Queue/q"]


def test_bob_gets_alerts_about_his_gangs_without_the_names_of_others(as_bob: APIClient, as_alice: APIClient) -> None:
    mine, others = fire(["team-a", "team-b"]), fire(["team-b"], signature="theirs")
    (row,) = results(as_bob, INSTANCES)
    assert (row["id"], row["text"]) == (mine.pk, "Held by something in another namespace.")
    detail = as_bob.get(f"{INSTANCES}/{mine.pk}").json()
    assert [(gang["namespace"], gang["name"]) for gang in detail["members"]] == [("team-a", "big")]
    assert as_bob.get(f"{INSTANCES}/{others.pk}").status_code == 404
    assert len(as_alice.get(f"{INSTANCES}/{mine.pk}").json()["members"]) == 2


def test_an_alert_of_a_blind_cluster_says_since_when_its_rule_is_silent(as_alice: APIClient) -> None:
    alert = fire(["team-a"])
    assert as_alice.get(f"{INSTANCES}/{alert.pk}").json()["silent_since"] is None
    AlertClock.objects.create(cluster=alert.cluster, started_at=NOW, blind_since=NOW)
    assert as_alice.get(f"{INSTANCES}/{alert.pk}").json()["silent_since"] == "2026-11-30T09:00:00Z"


def test_acknowledging_is_for_persons_who_see_everything(as_alice: APIClient, as_bob: APIClient, alice: User) -> None:
    path = f"{INSTANCES}/{fire(['team-a']).pk}/acknowledge"
    token = bearer(token_create(user=alice, name="ci", scopes=list(TokenScope)).text)
    assert token.post(path, {}, format="json").json()["code"] == "login_required"
    assert as_bob.post(path, {}, format="json").json()["code"] == "whole_view_needed"
    answer = as_alice.post(path, {"note": "on it"}, format="json")
    assert (answer.status_code, answer.json()["acknowledged_by"], answer.json()["acknowledged_note"]) == (
        200, "alice", "on it",
    )  # fmt: skip
    again = as_alice.post(path, {}, format="json")
    assert (again.status_code, again.json()["code"]) == (409, "not_to_acknowledge")


def test_a_mute_is_made_listed_and_ended(as_alice: APIClient, as_bob: APIClient, alice: User) -> None:
    path = "/api/v1/alerts/mutes"
    wanted = {"kind": "queue", "value": "q", "cluster": "east", "reason": "drain", "seconds": 3600}
    token = bearer(token_create(user=alice, name="ci", scopes=list(TokenScope)).text)
    assert token.post(path, wanted, format="json").status_code == 403
    assert as_bob.post(path, wanted, format="json").status_code == 403
    made = as_alice.post(path, wanted, format="json")
    assert (made.status_code, made.json()["cluster"], made.json()["created_by"]) == (201, "east", "alice")
    assert [row["value"] for row in results(as_alice, path)] == ["q"]
    assert results(as_bob, path) == []
    for wrong in ({"reason": ""}, {"seconds": 0}, {"kind": "x"}, {"value": ""}):
        assert as_alice.post(path, {**wanted, **wrong}, format="json").status_code == 400
    assert as_alice.post(path, {**wanted, "cluster": "nowhere"}, format="json").status_code == 404
    assert as_bob.delete(f"{path}/{made.json()['id']}").status_code == 403
    assert as_alice.delete(f"{path}/{made.json()['id']}").status_code == 204
    assert results(as_alice, path) == []
    assert as_alice.delete(f"{path}/999").status_code == 404
    assert Mute.objects.get().ended_name == "alice"


def test_rules_are_listed_with_their_numbers_for_those_who_see_everything(
    as_alice: APIClient, as_bob: APIClient
) -> None:
    rows = results(as_alice, RULES)
    assert [row["number"] for row in rows] == list(range(1, 14))
    flapping = next(row for row in rows if row["key"] == "flapping")
    assert flapping["values"]["turns"] == 4
    assert {
        "name": "turns",
        "title": "Returns to a reason",
        "default": 4.0,
        "least": 1.0,
        "most": 100.0,
        "unit": "",
    } in (flapping["params"])
    assert results(as_bob, RULES) == []
    assert as_bob.get(f"{RULES}/flapping").json()["code"] == "whole_view_needed"


def test_a_part_of_a_rule_is_changed_by_an_admin(as_alice: APIClient, as_bob: APIClient, alice: User) -> None:
    path = f"{RULES}/flapping"
    token = bearer(token_create(user=alice, name="ci", scopes=list(TokenScope)).text)
    vera = User.objects.create_user("vera", password="x", role="viewer")
    for client in (token, as_bob, asking(vera)):
        assert client.patch(path, {"severity": "page"}, format="json").status_code == 403
    changed = as_alice.patch(path, {"values": {"turns": 6}, "clusters": ["east"]}, format="json").json()
    assert (changed["values"]["turns"], changed["clusters"], changed["severity"]) == (6, ["east"], "ticket")
    assert changed["changed_by"] == "alice"
    wrong_types = ({"for_seconds": "60"}, {"is_enabled": 1}, {"clusters": [1]}, {"values": {"turns": "6"}})
    out_of_bounds = ({"values": {"turns": 0}}, {"values": {"nothing": 1}}, {"for_seconds": -1}, {"severity": "x"})
    for wrong in (*wrong_types, *out_of_bounds):
        assert as_alice.patch(path, wrong, format="json").status_code == 400
    assert as_alice.delete(path).json()["code"] == "rule_built_in"
    assert AuditEntry.objects.filter(action="alert_rule.change").count() == 1
    assert as_alice.get(f"{RULES}/no-such").status_code == 404


CUSTOM = {"title": "Waits at limit", "condition": {"codes": ["QUEUE_LIMIT"]}, "for_seconds": 0}


def test_a_rule_of_ones_own_is_tried_made_changed_and_deleted(as_alice: APIClient, as_bob: APIClient) -> None:
    Cluster.objects.update(added_at=NOW - timedelta(days=1))
    tried = as_alice.post("/api/v1/alerts/backtest?days=30", CUSTOM, format="json")
    assert tried.status_code == 200
    assert {row["cluster"] for row in tried.json()["results"]} == {"east", "west"}
    assert as_bob.post("/api/v1/alerts/backtest", CUSTOM, format="json").status_code == 403
    assert not AlertRule.objects.filter(key__startswith="custom").exists()
    made = as_alice.post(RULES, CUSTOM, format="json")
    assert (made.status_code, made.json()["key"]) == (201, "custom-waits-at-limit")
    path = f"{RULES}/custom-waits-at-limit"
    changed = as_alice.patch(path, {"condition": {"who": ["owner"]}, "title": "Owners"}, format="json").json()
    assert (changed["title"], changed["condition"]["who"], changed["condition"]["codes"]) == ("Owners", ["owner"], [])
    for wrong in ({"codes": ["NO_SUCH"]}, {"gpus_least": -1}, {"gpus_least": 9, "gpus_most": 8}):
        assert as_alice.patch(path, {"condition": wrong}, format="json").status_code == 400
    assert as_alice.delete(path).status_code == 204
    assert as_alice.post(RULES, {"title": "x"}, format="json").status_code == 400


def test_a_look_back_says_when_and_what_it_cannot_know(as_alice: APIClient, as_bob: APIClient) -> None:
    path = f"{RULES}/limit_wall/backtest"
    rows = results(as_alice, f"{path}?days=2")
    assert [row["result"] for row in rows] == [None, None]
    assert any("Cannot be told: " in words for row in rows for words in row["unknown"])
    assert as_alice.get(f"{path}?days=31").status_code == 400
    assert as_bob.get(path).status_code == 403


def test_routes_are_for_admins(as_alice: APIClient, as_bob: APIClient, alice: User) -> None:
    path = "/api/v1/alerts/routes"
    Channel.objects.create(name="ops", kind="webhook", host="h")
    Channel.objects.create(name="boss", kind="webhook", host="h")
    wanted = {"name": "pages", "channel": "ops", "severities": ["page"], "escalate_to": "boss",
              "escalate_after_minutes": 5}  # fmt: skip
    token = bearer(token_create(user=alice, name="ci", scopes=list(TokenScope)).text)
    for client in (token, as_bob):
        assert client.post(path, wanted, format="json").status_code == 403
    made = as_alice.post(path, wanted, format="json")
    assert (made.status_code, made.json()["escalate_to"]) == (201, "boss")
    assert as_alice.post(path, wanted, format="json").status_code == 409
    for wrong in ({"channel": "no"}, {"rules": ["no"]}, {"escalate_to": "ops"}, {"escalate_to": None}, {"name": ""}):
        assert as_alice.post(path, {**wanted, "name": "other", **wrong}, format="json").status_code == 400
    one = f"{path}/{made.json()['id']}"
    plain = {"name": "all", "channel": "boss"}
    assert as_alice.put(one, plain, format="json").json()["escalate_after_minutes"] is None
    assert [row["channel"] for row in results(as_alice, path)] == ["boss"]
    assert results(as_bob, path) == []
    assert as_bob.get(one).status_code == 403
    assert as_alice.get(one).json()["name"] == "all"
    assert as_alice.delete(one).status_code == 204
    assert not Route.objects.exists()
    assert as_alice.get(one).status_code == 404
