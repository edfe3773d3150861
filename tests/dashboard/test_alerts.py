"""The pages of alerts: what is shown to whom, that nothing changes by a link, and that forms say what is wrong."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import AuditEntry, User
from apps.alerts.models import Alert, AlertClock, AlertGang, AlertRule, Mute, Route
from apps.delivery.models import Channel
from apps.workloads.models import Gang
from tests.dashboard.markup import Page, visible_text
from tests.dashboard.world import World, bob

EVIL = "<img src=x onerror=alert(1)>"


def fire(world: World, names: list[str], *, rule: str = "fragmentation", **fields: Any) -> Alert:
    """Add an alert about some gangs, firing unless said otherwise."""
    gangs = list(Gang.objects.filter(cluster=world.cluster, name__in=names).order_by("pk"))
    standard = {
        "signature": "NO_FIT|DOMAIN_BUSY|Topology/cluster-topology", "state": "firing", "severity": "ticket",
        "verdict": "NO_FIT", "code": "DOMAIN_BUSY", "who": "cluster_admin", "title": "1 gang waits for 48 GPUs",
        "text": "52 GPUs are free and chat-prod/llama-70b-disagg-0 asks for 48, but no one place has them.",
        "gang_count": len(gangs), "gpus": 48, "since": world.as_of - timedelta(minutes=40),
        "fired_at": world.as_of - timedelta(minutes=25), "thread": "t",
    }  # fmt: skip
    alert = Alert.objects.create(cluster=world.cluster, rule=AlertRule.objects.get(key=rule), **(standard | fields))
    AlertGang.objects.bulk_create(AlertGang(alert=alert, gang=gang, joined_at=world.as_of) for gang in gangs)
    return alert


@pytest.fixture
def alert(world: World) -> Alert:
    return fire(world, ["llama-70b-disagg-0"])


@pytest.fixture
def channel(db: None) -> Channel:
    return Channel.objects.create(name="ops", kind="webhook", host="hooks.example")


def text(client: Client, path: str) -> str:
    content = client.get(path).content
    assert not Page(content).faults
    return visible_text(content)


def test_the_page_shows_what_fires_what_ended_and_that_nobody_is_told(
    world: World, alert: Alert, as_alice: Client
) -> None:
    ended = world.as_of - timedelta(minutes=1)
    fire(world, ["swe-bench-qwen-9"], signature="x", state="resolved", title="Old news", resolved_at=ended,
         resolution="eval-nightly/swe-bench-qwen-9 started at 09:13:22 UTC.")  # fmt: skip
    shown = text(as_alice, "/alerts/")
    for words in (
        "1 alert fires",
        "1 gang waits for 48 GPUs",
        "Old news",
        "swe-bench-qwen-9 started",
        "No route leads",
    ):
        assert words in shown
    assert "Never fits" in shown


def test_a_blind_cluster_is_said(world: World, alert: Alert, as_alice: Client) -> None:
    AlertClock.objects.create(cluster=world.cluster, started_at=world.as_of, blind_since=world.as_of)
    assert "fjord-1 is blind since" in text(as_alice, "/alerts/")
    assert "this alert stays as it was then" in text(as_alice, f"/alerts/{alert.pk}/")


def test_looks_that_fail_are_said(world: World, as_alice: Client, as_bob: Client) -> None:
    long_ago = world.now - timedelta(minutes=6)
    AlertClock.objects.create(cluster=world.cluster, started_at=long_ago)
    for client in (as_alice, as_bob):
        assert "No look at fjord-1 has succeeded since" in text(client, "/alerts/")
    AlertClock.objects.update(evaluated_at=world.now)
    assert "No look at" not in text(as_alice, "/alerts/")


def test_one_alert_shows_its_gangs_and_its_story(world: World, alert: Alert, as_alice: Client) -> None:
    shown = text(as_alice, f"/alerts/{alert.pk}/")
    for words in ("llama-70b-disagg-0", "Fragmentation", "NO_FIT|DOMAIN_BUSY|Topology/cluster-topology", "Acknowledge"):
        assert words in shown


def test_names_from_a_cluster_stay_text(world: World, as_alice: Client) -> None:
    Gang.objects.filter(name="llama-70b-disagg-0").update(queue=EVIL, sentence=EVIL)
    found = fire(world, ["llama-70b-disagg-0"], title=EVIL, text=EVIL, signature=EVIL, queue=EVIL, subject=EVIL)
    for path in ("/alerts/", f"/alerts/{found.pk}/", f"/alerts/mute?alert={found.pk}"):
        content = as_alice.get(path).content
        assert not Page(content).faults
        assert b"<img" not in content


# Bob


def test_bob_sees_alerts_about_his_gangs_without_the_names_of_others(
    world: World, alert: Alert, as_bob: Client
) -> None:
    mine = fire(
        world, ["whisper-large-ft-1", "llama-70b-disagg-0"], signature="both",
        text="Held by chat-prod/llama-70b-disagg-0.",
    )  # fmt: skip
    for path in ("/alerts/", f"/alerts/{mine.pk}/"):
        content = as_bob.get(path).content.decode()
        assert "llama-70b" not in content
        assert "something in another namespace" in content
    assert "whisper-large-ft-1" in text(as_bob, f"/alerts/{mine.pk}/")
    assert "1 alert fires" in text(as_bob, "/alerts/")
    assert as_bob.get(f"/alerts/{alert.pk}/").status_code == 404


@pytest.mark.parametrize(
    "path", ["/alerts/rules/new", "/alerts/rules/never_fits/", "/alerts/routes/new", "/alerts/mute?alert={}"]
)
def test_what_speaks_for_everybody_is_not_for_bob(world: World, as_bob: Client, path: str) -> None:
    mine = fire(world, ["whisper-large-ft-1"])
    assert as_bob.get(path.format(mine.pk)).status_code == 403
    assert as_bob.post(path.format(mine.pk)).status_code == 403
    assert as_bob.post(f"/alerts/{mine.pk}/acknowledge").status_code == 403
    assert Alert.objects.get().acknowledged_at is None


def viewer() -> Client:
    user = User.objects.create_user("vera", password="x", role="viewer")
    client = Client()
    client.force_login(user)
    return client


def test_a_viewer_may_mute_acknowledge_and_try_but_not_save(world: World, alert: Alert) -> None:
    client = viewer()
    assert client.post(f"/alerts/{alert.pk}/acknowledge", {"note": "on it"}).status_code == 302
    assert Alert.objects.get().acknowledged_name == "vera"
    form = {"severity": "page", "for_minutes": "1", "keep_minutes": "1", "is_enabled": "on"}
    assert client.post("/alerts/rules/never_fits/", {**form, "do": "try"}).status_code == 200
    assert client.post("/alerts/rules/never_fits/", {**form, "do": "save"}).status_code == 403
    assert AlertRule.objects.get(key="never_fits").severity == "ticket"
    assert client.get("/alerts/routes/new").status_code == 403


# Muting and acknowledging


def test_a_link_to_mute_asks_and_only_the_form_mutes(world: World, alert: Alert, as_alice: Client) -> None:
    path = f"/alerts/mute?alert={alert.pk}&hours=4"
    shown = text(as_alice, path)
    assert "This cause" in shown
    assert "The gang chat-prod/llama-70b-disagg-0, whatever it waits for" in shown
    assert not Mute.objects.exists()
    refused = as_alice.post(path, {"kind": "signature", "hours": "4", "reason": " "})
    assert refused.status_code == 422
    assert not Page(refused.content).faults
    assert as_alice.post(path, {"kind": "signature", "hours": "4", "reason": "drain"}).status_code == 302
    mute = Mute.objects.get()
    assert (mute.value, mute.created_name, mute.reason) == (alert.signature, "alice", "drain")
    assert mute.ends_at - mute.created_at == timedelta(hours=4)
    assert "drain" in text(as_alice, "/alerts/")
    assert AuditEntry.objects.filter(action="mute.create").exists()
    assert as_alice.post(f"/alerts/mutes/{mute.pk}/end").status_code == 302
    assert Mute.objects.get().ended_name == "alice"


def test_a_gang_is_muted_from_its_page(world: World, as_alice: Client) -> None:
    gang = Gang.objects.get(name="llama-70b-disagg-0")
    path = f"/alerts/mute?gang={gang.public_id}"
    assert "chat-prod/llama-70b-disagg-0" in text(as_alice, path)
    as_alice.post(path, {"kind": "gang", "hours": "1", "reason": "known"})
    assert Mute.objects.get().value == "chat-prod/llama-70b-disagg-0"


def test_a_gangs_page_names_what_fires_about_it_and_links_to_mute(
    world: World, alert: Alert, as_alice: Client, as_bob: Client
) -> None:
    path = "/clusters/fjord-1/gangs/chat-prod/llama-70b-disagg-0/"
    page = Page(as_alice.get(path).content)
    assert not page.faults
    assert f"/alerts/{alert.pk}/" in page.links
    assert any(link.startswith("/alerts/mute?gang=fjord-1~") for link in page.links)
    Alert.objects.update(is_muted=True)
    assert "Fragmentation, muted" in text(as_alice, path)
    Alert.objects.update(state="resolved")
    assert f"/alerts/{alert.pk}/" not in Page(as_alice.get(path).content).links
    mine = Page(as_bob.get("/clusters/fjord-1/gangs/mm-lab/whisper-large-ft-1/").content)
    assert not [link for link in mine.links if link.startswith("/alerts/mute")]


@pytest.mark.parametrize("query", ["", "?alert=99", "?alert=x", "?alert=" + "9" * 40, "?gang=x~y", "?gang=%00"])
def test_nothing_to_mute_is_not_found(world: World, as_alice: Client, query: str) -> None:
    assert as_alice.get(f"/alerts/mute{query}").status_code == 404


def test_acknowledging_twice_says_that_someone_has(world: World, alert: Alert, as_alice: Client) -> None:
    for _ in range(2):
        answer = as_alice.post(f"/alerts/{alert.pk}/acknowledge", {"note": ""}, follow=True)
    assert "someone has acknowledged it already" in visible_text(answer.content)
    assert as_alice.post(f"/alerts/{alert.pk}/acknowledge", {"note": "x" * 501}).status_code == 422


# Rules and routes


def test_a_rule_is_set_with_its_numbers_in_minutes(world: World, as_alice: Client) -> None:
    form = {
        "severity": "page", "for_minutes": "2.5", "keep_minutes": "3", "clusters": "east, west", "turns": "6",
        "turn_seconds": "45", "evictions": "3", "eviction_seconds": "120", "do": "save",
    }  # fmt: skip
    assert as_alice.post("/alerts/rules/flapping/", form).status_code == 302
    rule = AlertRule.objects.get(key="flapping")
    assert (rule.severity, rule.for_seconds, rule.is_enabled, rule.clusters) == ("page", 150, False, ["east", "west"])
    assert rule.values == {"turns": 6, "turn_seconds": 2700}
    entry = AuditEntry.objects.get(action="alert_rule.change")
    assert entry.details["severity"] == ["ticket", "page"]
    assert "changed" in text(as_alice, "/alerts/rules/flapping/")


@pytest.mark.parametrize("turns", ["0", "101", "x", ""])
def test_a_number_out_of_bounds_is_refused(world: World, as_alice: Client, turns: str) -> None:
    form = {"severity": "page", "for_minutes": "1", "keep_minutes": "1", "turns": turns, "do": "save"}
    answer = as_alice.post("/alerts/rules/flapping/", form)
    assert answer.status_code == 422
    assert not Page(answer.content).faults
    assert AlertRule.objects.get(key="flapping").values == {}


CUSTOM = {
    "title": "Big waits", "verdicts": ["NO_FIT"], "codes": "domain_busy", "gpus_least": "32", "severity": "ticket",
    "for_minutes": "10", "keep_minutes": "5", "is_enabled": "on",
}  # fmt: skip


def test_a_rule_of_ones_own_is_tried_before_it_is_saved(world: World, as_alice: Client) -> None:
    tried = as_alice.post("/alerts/rules/new", {**CUSTOM, "do": "try"})
    assert tried.status_code == 200
    shown = visible_text(tried.content)
    assert "fjord-1: would have fired 1 time" in shown
    assert not AlertRule.objects.filter(key__startswith="custom").exists()
    assert as_alice.post("/alerts/rules/new", {**CUSTOM, "do": "save"}).status_code == 302
    rule = AlertRule.objects.get(key="custom-big-waits")
    assert rule.condition is not None
    assert (rule.condition["codes"], rule.condition["gpus_least"]) == (["DOMAIN_BUSY"], 32)
    assert "Big waits" in text(as_alice, "/alerts/rules/custom-big-waits/")
    again = as_alice.post("/alerts/rules/new", {**CUSTOM, "do": "save"})
    assert again["Location"] == "/alerts/rules/custom-big-waits-2/"
    assert as_alice.post("/alerts/rules/custom-big-waits/remove").status_code == 302
    assert not AlertRule.objects.filter(key="custom-big-waits").exists()


def test_an_unknown_code_is_refused(world: World, as_alice: Client) -> None:
    answer = as_alice.post("/alerts/rules/new", {**CUSTOM, "codes": "NO_SUCH", "do": "save"})
    assert answer.status_code == 422
    assert "There is no code NO_SUCH" in visible_text(answer.content)


def test_a_rule_of_the_list_cannot_be_deleted(world: World, as_alice: Client) -> None:
    answer = as_alice.post("/alerts/rules/never_fits/remove", follow=True)
    assert "can be switched off, not deleted" in visible_text(answer.content)
    assert AlertRule.objects.filter(key="never_fits").exists()


@pytest.mark.parametrize("rule", ["never_fits", "blind", "starvation", "slo_burn"])
def test_a_rule_looks_back_on_what_is_kept(world: World, as_alice: Client, rule: str) -> None:
    shown = text(as_alice, f"/alerts/rules/{rule}/?look")
    assert "fjord-1: would have fired" in shown or "cannot be told from what is kept" in shown


def test_a_route_is_made_set_and_deleted(world: World, as_alice: Client, channel: Channel) -> None:
    second = Channel.objects.create(name="boss", kind="webhook", host="boss.example")
    form = {
        "name": "pages", "channel": channel.pk, "severities": ["page"], "rules": ["blind"], "queues": "q r",
        "escalate_to": second.pk, "escalate_after_minutes": "15", "is_enabled": "on",
    }  # fmt: skip
    assert as_alice.post("/alerts/routes/new", form).status_code == 302
    route = Route.objects.get()
    assert (route.severities, route.queues, route.escalate_to) == (["page"], ["q", "r"], second)
    assert "boss after 15 min" in text(as_alice, "/alerts/")
    assert not Page(as_alice.get(f"/alerts/routes/{route.pk}/").content).faults
    twice = as_alice.post("/alerts/routes/new", form)
    assert "There is a route named" in visible_text(twice.content)
    same = as_alice.post(f"/alerts/routes/{route.pk}/", {**form, "escalate_to": channel.pk})
    assert "must be another one" in visible_text(same.content)
    half = as_alice.post(f"/alerts/routes/{route.pk}/", {**form, "escalate_after_minutes": ""})
    assert half.status_code == 422
    assert as_alice.post(f"/alerts/routes/{route.pk}/remove").status_code == 302
    assert not Route.objects.exists()


def test_the_list_costs_the_same_for_one_alert_and_for_thirty(
    world: World, as_alice: Client, django_assert_num_queries: Any
) -> None:
    fire(world, ["llama-70b-disagg-0"])
    as_alice.get("/alerts/")
    with django_assert_num_queries(11):
        as_alice.get("/alerts/")
    for n in range(30):
        fire(world, ["llama-70b-disagg-0"], signature=f"s{n}")
    with django_assert_num_queries(11):
        as_alice.get("/alerts/")


def test_bob_of_another_namespace_sees_none(world: World, alert: Alert) -> None:
    client = Client()
    client.force_login(bob(namespace="elsewhere"))
    assert "No alert fires" in text(client, "/alerts/")
