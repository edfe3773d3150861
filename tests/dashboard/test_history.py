"""What pages draw of the past: the attempts of a gang, capacity and shares over time, what nodes did."""

from __future__ import annotations

from datetime import timedelta

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.workloads.models import Attempt
from tests.dashboard.markup import Page, visible_text
from tests.dashboard.world import World, history

GANG = "/clusters/fjord-1/gangs/chat-prod/llama-70b-disagg-0/"


def text(client: Client, path: str) -> str:
    content = client.get(path).content
    assert not Page(content).faults
    return visible_text(content)


def test_attempts_are_a_ladder_and_a_list(world: World, as_alice: Client) -> None:
    assert "Attempts" not in text(as_alice, GANG)
    history(world)
    shown = text(as_alice, GANG)
    assert "Attempts 2 attempts" in shown
    assert "Gates removed" in shown
    assert shown.index("First read") < shown.index("Gates removed")
    assert "Node chosen not yet" in shown
    assert "2, this one" in shown
    assert "1 chat-prod/llama-70b-disagg-0-old" in shown


def test_samples_become_lines_and_a_table(world: World, as_alice: Client) -> None:
    assert "No sample of this span is kept yet" in text(as_alice, "/topology/")
    history(world)
    shown = text(as_alice, "/topology/?hours=24")
    assert "From whole cluster block-1 block-2" in shown
    content = as_alice.get("/queues/?hours=24").content.decode()
    assert "Now chat-serving 10.20; pretrain 10.20; sandbox 10.20; batch-eval not known" not in content
    assert "chat-serving 10.20" in content
    assert "batch-eval not known" in content


def test_nodes_say_what_they_did(world: World, as_alice: Client) -> None:
    assert "No node and no part of the platform changed its state" in text(as_alice, "/nodes/")
    history(world)
    shown = text(as_alice, "/nodes/")
    assert "b1-13 ready not ready KubeletNotReady" in shown
    assert shown.index("b1-13 ready not ready") < shown.index("a1-14 ready cordoned by hand")


def test_queries_do_not_grow_with_attempts(world: World, as_alice: Client) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as found:
            as_alice.get(GANG)
        return len(found)

    history(world)
    queries()
    before = queries()
    for number in range(9):
        gang = world.gang(f"chat-prod/again-{number}", "q", (1, 1), timedelta(minutes=number))
        Attempt.objects.create(cluster=world.cluster, gang=gang, lineage="llama", seen_at=world.at(number))
    assert queries() == before
    assert "The newest 8 of 11." in text(as_alice, GANG)
