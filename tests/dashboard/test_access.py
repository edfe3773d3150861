"""Who sees what: nobody without a login, Bob his namespace only, and names of others nowhere."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from apps.dashboard.urls import pages
from tests.dashboard.markup import Page, visible_text
from tests.dashboard.world import World, bob

GANG = ("fjord-1", "chat-prod", "llama-70b-disagg-0")
ARGS: dict[str, tuple[object, ...]] = {
    "gang": GANG,
    "gang-fragment": GANG,
    "gang-explanation": GANG,
    "gang-snapshot": GANG,
    "cluster": ("fjord-1",),
    "whatif": ("fjord-1",),
    "deployment": ("fjord-1", "DynamoGraphDeployment", "chat-prod", "llama-70b-disagg"),
    "channel": (1,),
    "channel-fragment": (1,),
    "channel-do": (1, "test"),
    "channel-new": ("slack_webhook",),
    "delivery-resend": ("00000000-0000-0000-0000-000000000000",),
    "reason": ("domain-busy",),
    "export": ("csv",),
    "gangs-export": ("csv",),
    "nodes-export": ("json",),
    "upload-answer": ("00000000-0000-0000-0000-000000000000",),
    "upload-fragment": ("00000000-0000-0000-0000-000000000000",),
    "upload-document": ("00000000-0000-0000-0000-000000000000",),
    "token-revoke": (1,),
    "alert": (1,),
    "alert-acknowledge": (1,),
    "mute-end": (1,),
    "alert-rule": ("never_fits",),
    "alert-rule-remove": ("never_fits",),
    "alert-route": (1,),
    "alert-route-remove": (1,),
    "objective-remove": (1,),
    "report": (1,),
    "report-fragment": (1,),
    "report-send": (1,),
    "report-file": (1, "csv"),
    "report-schedule": (1,),
    "report-schedule-remove": (1,),
}
NAMES = sorted(str(page.name) for page in pages)  # type: ignore[union-attr]
HIDDEN = ("chat-prod", "llama-70b", "swe-bench", "eval-nightly", "embed-e5", "olmo-7b", "sandbox-dmitri")


def address(name: str) -> str:
    return reverse(f"dashboard:{name}", args=ARGS.get(name, ()))


@pytest.mark.parametrize("name", NAMES)
def test_every_page_asks_for_a_login(db: None, name: str) -> None:
    answer = Client().get(address(name))
    assert answer.status_code == 302
    assert answer["Location"].startswith("/login/?next=")


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"password"}))
def test_a_one_time_password_opens_nothing_but_its_own_change(db: None, name: str) -> None:
    user = bob()
    user.must_change_password = True
    user.save()
    client = Client()
    client.force_login(user)
    answer = client.get(address(name))
    assert answer.status_code == 302
    assert answer["Location"] == "/account/password/"


@pytest.mark.parametrize(
    "name",
    [
        "triage", "gangs", "deployments", "queues", "topology", "nodes", "clusters", "checks", "alerts", "reports",
        "export",
        "gangs-export",
    ],
)  # fmt: skip
def test_bob_reads_no_name_of_another_namespace(world: World, as_bob: Client, name: str) -> None:
    content = as_bob.get(address(name)).content.decode()
    assert not [word for word in HIDDEN if word in content]


@pytest.mark.parametrize("fragment", ["freshness", "triage-summary", "triage-list", "waiting-chart", "changes"])
def test_bobs_fragments_hold_no_name_of_another_namespace(world: World, as_bob: Client, fragment: str) -> None:
    content = as_bob.get(f"/fragments/{fragment}").content.decode()
    assert not [word for word in HIDDEN if word in content]


def test_bob_sees_his_gang_and_is_told_that_his_view_is_partial(world: World, as_bob: Client) -> None:
    text = visible_text(as_bob.get("/").content)
    assert "1 of 1 gang waits for 8 GPUs" in text
    assert "Partial view: mm-lab" in text
    assert "whisper-large-ft-1" in text


@pytest.mark.parametrize("name", ["gang", "gang-fragment", "gang-explanation", "gang-snapshot"])
def test_a_gang_of_another_namespace_looks_like_one_that_does_not_exist(
    world: World, as_bob: Client, name: str
) -> None:
    assert as_bob.get(address(name)).status_code == 404
    missing = reverse(f"dashboard:{name}", args=("fjord-1", "chat-prod", "no-such-gang"))
    assert as_bob.get(missing).status_code == 404


def test_a_gang_of_another_namespace_is_not_found_by_uid_either(world: World, as_bob: Client) -> None:
    other = "/clusters/fjord-1/gangs/mm-lab/whisper-large-ft-1/?uid=uid-chat-prod-llama-70b-disagg-0"
    assert as_bob.get(other).status_code == 404


def test_the_palette_finds_only_what_bob_may_open(world: World, as_bob: Client, as_alice: Client) -> None:
    assert as_alice.get("/palette?q=llama-70b-disagg-0").json()["items"][0]["title"] == GANG[2]
    titles = [item["title"] for item in as_bob.get("/palette?q=l").json()["items"]]
    assert not [title for title in titles if "llama" in title]
    assert "whisper-large-ft-1" in titles


def test_a_viewer_of_chat_prod_reads_his_gang_without_the_names_of_others(world: World) -> None:
    client = Client()
    client.force_login(bob(namespace="chat-prod"))
    content = client.get(address("gang")).content
    assert "Needs 48 GPUs in one rack" in visible_text(content)
    assert "embed-e5" not in content.decode()
    assert "qwen-32b-agg-2" in content.decode()
    assert "Snapshot of that moment" not in visible_text(content)
    assert client.get(address("gang-snapshot")).status_code == 403


def test_only_gangs_that_the_reader_may_open_are_links(world: World, as_alice: Client) -> None:
    links = Page(as_alice.get(address("gang")).content).links
    assert "/clusters/fjord-1/gangs/search-prod/embed-e5-large-1/" in links


def test_a_cluster_without_a_grant_is_not_there(world: World) -> None:
    client = Client()
    client.force_login(bob(cluster="elsewhere"))
    assert client.get(address("cluster")).status_code == 404
    assert "fjord-1" not in client.get("/").content.decode()


def test_refusals_and_missing_pages_have_the_style(world: World, as_bob: Client) -> None:
    missing = as_bob.get("/clusters/fjord-1/gangs/a/b/")
    assert "No gang a/b in cluster fjord-1 is visible to you." in visible_text(missing.content)
    nowhere = as_bob.get("/nowhere")
    assert nowhere.status_code == 404
    assert "This address leads to no page." in visible_text(nowhere.content)
    for answer in (missing, nowhere):
        assert not Page(answer.content).faults


def test_pages_are_not_kept_by_proxies(world: World, as_alice: Client) -> None:
    for name in ("triage", "gang", "queues"):
        assert "private" in as_alice.get(address(name))["Cache-Control"]
