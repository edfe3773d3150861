"""Every page is well formed, has one heading and names for everything, and runs nothing that a cluster wrote."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse

from apps.inventory.models import Node, Queue
from apps.workloads.models import Gang
from tests.dashboard.markup import Page, visible_text
from tests.dashboard.test_access import ARGS, NAMES
from tests.dashboard.world import World, bind

FRAGMENTS = ("freshness", "triage-summary", "triage-list", "waiting-chart", "changes")
PAGES = [name for name in NAMES if not name.startswith(("fragment", "upload-"))]
ENDINGS = ("export", "explanation", "snapshot", "fragment", "revoke", "send", "remove", "resend", "-do")
PAGES = [name for name in PAGES if not name.endswith(ENDINGS)]
PAGES = [name for name in PAGES if name != "palette" and not name.endswith(("acknowledge", "mute-end"))]
EVIL = "<img src=x onerror=alert(1)>"
EVIL_ATTRIBUTE = '" onmouseover="alert(1)'


def get(client: Client, name: str, query: str = "") -> bytes:
    return client.get(reverse(f"dashboard:{name}", args=ARGS.get(name, ())) + query).content


@pytest.mark.parametrize("name", PAGES)
def test_page_is_well_formed(world: World, as_alice: Client, name: str) -> None:
    assert not Page(get(as_alice, name)).faults


@pytest.mark.parametrize("name", sorted(set(PAGES) - {"gang", "cluster"}))
def test_page_is_well_formed_with_nothing_to_show(as_alice: Client, name: str) -> None:
    assert not Page(get(as_alice, name)).faults


def test_login_page_is_well_formed(db: None) -> None:
    assert not Page(Client().get("/login/").content).faults


@pytest.mark.parametrize("name", ["triage", "gang", "gangs", "cluster", "queues", "topology", "nodes"])
def test_names_from_a_cluster_stay_text(world: World, as_alice: Client, name: str) -> None:
    gang = Gang.objects.get(name="llama-70b-disagg-0")
    Gang.objects.filter(pk=gang.pk).update(queue=EVIL, owner=EVIL, priority_class=EVIL_ATTRIBUTE)
    Queue.objects.filter(name="sandbox").update(name=EVIL_ATTRIBUTE, display_name=EVIL)
    Node.objects.filter(name="a1-01").update(name=EVIL, state_reason=EVIL)
    gang.explanations.all().delete()
    world.reason_rows_delete(gang)
    world.says(
        gang,
        "NO_FIT",
        "DOMAIN_BUSY",
        f"Needs {EVIL}.",
        binding=[bind("domain.gpu", EVIL, (48, 36, "gpu"), EVIL_ATTRIBUTE)],
        nodes=[{"reason": "gpu", "count": 3, "examples": [EVIL, EVIL_ATTRIBUTE]}],
        holders=[{"gang": f"ns/{EVIL}", "gpus": 1, "evictable": EVIL}],
        scheduler={"text": f"</pre><script>alert(1)</script>{EVIL}", "at": None, "match": "disagree"},
    )
    content = get(as_alice, name)
    assert not Page(content).faults
    assert b"<img" not in content
    assert b"<script>alert" not in content
    assert b" onmouseover=" not in content.replace(b"&quot; onmouseover=", b"")


def test_scheduler_text_with_a_script_is_shown_as_it_is(world: World, as_alice: Client) -> None:
    gang = world.gang("mm-lab/odd", "sandbox", (1, 1), timedelta(minutes=5))
    words = "</pre><script>alert(1)</script>"
    world.says(gang, "NO_FIT", "GPUS_BUSY", "x", scheduler={"text": words, "at": None, "match": "disagree"})
    assert words in visible_text(as_alice.get("/clusters/fjord-1/gangs/mm-lab/odd/").content)


def test_figures_cannot_end_their_script(world: World, as_alice: Client) -> None:
    gang = Gang.objects.get(name="llama-70b-disagg-0")
    world.cluster.domains.filter(name="rack-a2").update(name="</script><b>", path="block-1/</script><b>")
    content = as_alice.get(f"/clusters/fjord-1/gangs/chat-prod/{gang.name}/").content
    assert b"</script><b>" not in content
    assert not Page(content).faults


@pytest.mark.parametrize("name", FRAGMENTS)
def test_fragments_bring_their_parts_by_id(world: World, as_alice: Client, name: str) -> None:
    content = as_alice.get(f"/fragments/{name}").content
    faults = [fault for fault in Page(content).faults if "h1" not in fault and "nothing has the id h-list" not in fault]
    assert not faults
    assert b"data-part" in content or b'id="list"' in content


def test_every_page_refuses_inline_scripts(world: World, as_alice: Client) -> None:
    policy = as_alice.get("/")["Content-Security-Policy"]
    assert "script-src 'self'" in policy
    assert "unsafe-eval" not in policy


def test_first_paint_is_complete_without_scripts(world: World, as_alice: Client) -> None:
    content = as_alice.get("/").content
    page = Page(content)
    assert "swe-bench-qwen-9" in visible_text(content)
    assert any(link.startswith("/clusters/fjord-1/gangs/") for link in page.links)
    assert "#main" in page.links


def test_theme_is_kept_in_a_cookie_and_nothing_else_is_taken_from_it(world: World, as_alice: Client) -> None:
    as_alice.cookies["gangdash_theme"] = "dark"
    assert 'data-theme="dark"' in as_alice.get("/").content.decode()
    as_alice.cookies["gangdash_theme"] = '"><script>'
    assert "data-theme" not in as_alice.get("/").content.decode()[:400]
