"""How many queries each read costs is part of the contract: a change of query_counts.json is a decision.

Counted for Alice and for Bob, with twelve gangs and again with more, so that a count that grows with rows shows.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from apps.clusters.models import Cluster
from apps.workloads.models import Gang
from tests.api.test_access import READS

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("scene")]
BASELINE = Path(__file__).with_name("query_counts.json")


def count(client: APIClient, path: str) -> int:
    with CaptureQueriesContext(connection) as queries:
        assert client.get(path).status_code == 200
    return len(queries)


def counts(clients: dict[str, APIClient]) -> dict[str, dict[str, int]]:
    return {path: {name: count(client, path) for name, client in clients.items()} for path in READS}


def test_each_read_costs_what_the_baseline_says(as_alice: APIClient, as_bob: APIClient) -> None:
    clients = {"alice": as_alice, "bob": as_bob}
    assert counts(clients) == json.loads(BASELINE.read_text(encoding="utf-8"))
    east = Cluster.objects.get(name="east")
    Gang.objects.bulk_create(
        Gang(cluster=east, uid=f"u{n}", namespace="team-a", name=f"g{n}", first_seen_at=east.added_at,
             last_seen_at=east.added_at) for n in range(50)
    )  # fmt: skip
    assert counts(clients) == json.loads(BASELINE.read_text(encoding="utf-8"))
