"""The what-if page: a form whose address is the question, an answer for the reader's own eyes."""

from __future__ import annotations

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.clusters.models import Cluster
from apps.dashboard.views.whatif import PageThrottle
from apps.dashboard.whatif import KINDS, rows_of
from apps.dashboard.whatif_links import try_url
from apps.diagnosis.models import Snapshot
from apps.inventory.models import Queue
from apps.workloads.veil import HIDDEN
from gangdash.engine.changes import is_modelled
from gangdash.engine.verdict import FixKind
from tests.apps.diagnosis.analysed import analysed, busy_cluster
from tests.dashboard.markup import Page, visible_text
from tests.dashboard.world import bob

PAGE = "/clusters/east/whatif/"


@pytest.fixture(autouse=True)
def nothing_kept() -> None:
    cache.clear()


@pytest.fixture
def moment(db: None) -> Snapshot:
    return analysed(Cluster.objects.create(name="east", source="folder"), busy_cluster())


def test_the_form_offers_every_change_that_a_replay_can_show() -> None:
    assert {item.kind for item in KINDS} == {kind for kind in FixKind if is_modelled(kind)}


def test_the_form_offers_queues_nodes_and_waiting_gangs(moment: Snapshot, as_alice: Client) -> None:
    answer = as_alice.get(PAGE)
    assert not Page(answer.content).faults
    text = answer.content.decode()
    assert '<option value="leaf">' in text
    assert '<option value="n2">' in text
    assert '<option value="team-a/mine">' in text


def test_a_sent_form_becomes_an_address(moment: Snapshot, as_alice: Client) -> None:
    rows = {"kind": ["uncordon", "", "add_nodes"], "object": [" n2 ", "x", "n1"], "values": ["", "", "count=1"]}
    answer = as_alice.get(PAGE, rows)
    assert answer.status_code == 302
    assert answer["Location"] == f"{PAGE}?change=uncordon%3An2&change=add_nodes%3An1%3Acount%3D1"


def test_the_answer_names_effects_totals_and_the_moment(moment: Snapshot, as_alice: Client) -> None:
    answer = as_alice.get(PAGE, {"change": "uncordon:n2"})
    assert not Page(answer.content).faults
    text = visible_text(answer.content)
    assert "Starts 1 gang, delays none" in text
    assert "On the newest analysis" in text
    assert moment.digest[:19] in text
    assert f"base={moment.digest.replace(':', '%3A')}" in answer.content.decode()
    assert "python3 manage.py whatif east-20261130T090000Z.json.gz --change uncordon:n2" in text
    assert reverse("dashboard:gang", args=["east", "team-a", "mine"]) in answer.content.decode()


def test_the_form_keeps_what_was_asked(moment: Snapshot, as_alice: Client) -> None:
    text = as_alice.get(PAGE, {"change": "raise_limit:leaf:gpu=3"}).content.decode()
    assert 'value="leaf" list="whatif-objects"' in text
    assert 'value="gpu=3"' in text
    assert [row.kind for row in rows_of(["raise_limit:leaf:gpu=3"])] == ["raise_limit", "", ""]


@pytest.mark.parametrize("change", ["uncordon:nowhere", "no_such_kind:x", "raise_limit:leaf:gpu", "<script>:x"])
def test_a_change_that_cannot_be_made_is_said_beside_the_form(moment: Snapshot, as_alice: Client, change: str) -> None:
    answer = as_alice.get(PAGE, {"change": change})
    assert answer.status_code == 422
    assert not Page(answer.content).faults
    assert "Traceback" not in answer.content.decode()
    assert "<script>:x" not in answer.content.decode()


def test_bob_reads_no_name_of_another_namespace(moment: Snapshot) -> None:
    client = Client()
    client.force_login(bob(namespace="team-a", cluster="east"))
    answer = client.get(PAGE, {"change": ["uncordon:n2", "add_nodes:n1:count=1"]})
    assert answer.status_code == 200
    assert "theirs" not in answer.content.decode()
    assert HIDDEN in visible_text(answer.content)
    assert "manage.py whatif" not in visible_text(answer.content)


def test_bob_does_not_find_another_cluster(moment: Snapshot, as_bob: Client) -> None:
    assert as_bob.get(PAGE).status_code == 404


def test_too_many_questions_are_refused(moment: Snapshot, as_alice: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PageThrottle, "THROTTLE_RATES", {"whatif": "1/min"})
    assert as_alice.get(PAGE, {"change": "uncordon:n2"}).status_code == 200
    answer = as_alice.get(PAGE, {"change": "uncordon:n2"})
    assert answer.status_code == 429
    assert "Too many questions" in visible_text(answer.content)


@pytest.mark.parametrize("query", ["", "?change=uncordon%3An2"])
def test_queries_do_not_grow_with_rows(moment: Snapshot, as_alice: Client, query: str) -> None:
    as_alice.get(PAGE + query)
    with CaptureQueriesContext(connection) as few:
        as_alice.get(PAGE + query)
    for index in range(20):
        Queue.objects.create(cluster=moment.cluster, name=f"q{index}", uid=f"q{index}")
    with CaptureQueriesContext(connection) as many:
        as_alice.get(PAGE + query)
    assert len(many) == len(few) <= 12


def test_the_page_of_a_cluster_leads_here(moment: Snapshot, as_alice: Client) -> None:
    assert f'href="{PAGE}"' in as_alice.get("/clusters/east/").content.decode()


def test_every_page_leads_here_for_the_picked_cluster_or_the_first(moment: Snapshot, as_alice: Client) -> None:
    Cluster.objects.create(name="west", source="folder")
    assert f'href="{PAGE}"' in as_alice.get("/").content.decode()
    assert 'href="/clusters/west/whatif/"' in as_alice.get("/?cluster=west").content.decode()
    assert 'href="/clusters/west/whatif/"' in as_alice.get(PAGE).content.decode()


def test_without_a_cluster_nothing_leads_here(as_alice: Client) -> None:
    assert "What if" not in visible_text(as_alice.get("/").content)


def test_the_short_address_leads_to_the_page(moment: Snapshot, as_alice: Client) -> None:
    answer = as_alice.get("/c/east/whatif?change=uncordon%3An2")
    assert answer["Location"] == f"{PAGE}?change=uncordon%3An2"


@pytest.mark.parametrize(
    "change, query",
    [
        ({"kind": "raise_limit", "object": "leaf", "gpu": 8}, "change=raise_limit%3Aleaf%3Agpu%3D8"),
        ({"kind": "uncordon", "object": "Node/n2"}, "change=uncordon%3ANode%2Fn2"),
        (
            {"kind": "raise_limit", "object": "a", "gpu": 8, "also": ["raise_limit:b:gpu=9"]},
            "change=raise_limit%3Aa%3Agpu%3D8&change=raise_limit%3Ab%3Agpu%3D9",
        ),
    ],
)
def test_a_fix_leads_to_its_question(change: dict[str, object], query: str) -> None:
    assert try_url("east", change) == f"{PAGE}?{query}"


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "restart_component", "object": "Deployment/kai/binder"},
        {"kind": "evict_gang", "object": HIDDEN},
        {"kind": "nonsense"},
        {"kind": "set_label", "object": "Node/n", "key": "a,b"},
    ],
)
def test_a_fix_that_cannot_be_asked_leads_nowhere(change: dict[str, object]) -> None:
    assert try_url("east", change) == ""
