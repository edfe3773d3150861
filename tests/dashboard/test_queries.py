"""How many queries a page may make: the same for ten gangs and for fifty."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from tests.dashboard.world import World, bind

# Session, user and freshness are four of each.
BASELINE = {
    "/": 17,
    "/fragments/freshness": 4,
    "/fragments/triage-summary": 8,
    "/fragments/triage-list": 6,
    "/fragments/waiting-chart": 7,
    "/fragments/changes": 6,
    "/clusters/fjord-1/gangs/chat-prod/llama-70b-disagg-0/": 12,
    "/gangs/": 8,
    "/alerts/": 11,
    "/queues/": 10,
    "/nodes/": 10,
    "/topology/": 12,
    "/clusters/": 6,
    "/clusters/fjord-1/": 8,
    "/reasons/": 4,
    "/palette?q=llama": 6,
}


@pytest.mark.parametrize("path", sorted(BASELINE))
def test_queries_do_not_grow_with_rows(
    world: World, as_alice: Client, django_assert_num_queries: DjangoAssertNumQueries, path: str
) -> None:
    for at in range(12):
        gang = world.gang(f"crowd/llama-{at}", "crowd", (1, 1), timedelta(minutes=at))
        need = bind("queue.limit.gpu", "crowd", (9, 8, "gpu"), "Queue/crowd")
        world.says(gang, "POLICY", "QUEUE_LIMIT", f"Crowded {at}.", binding=[need])
    as_alice.get(path)
    with django_assert_num_queries(BASELINE[path]):
        assert as_alice.get(path).status_code == 200
