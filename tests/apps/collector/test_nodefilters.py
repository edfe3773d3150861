"""Which nodes a gang may never use: told by its pods and the nodes alone, shared by gangs, and drawn on its page."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import User
from apps.clusters.models import Cluster
from apps.collector.rows import FoundRows, found_rows
from apps.collector.sync import rows_sync
from apps.diagnosis.models import Snapshot
from apps.diagnosis.services.recording import results_record
from apps.inventory.models import NodeFilter
from gangdash.engine.model.selectors import Taint, Toleration
from tests.apps import facts
from tests.apps.answers import diagnosis, document
from tests.apps.diagnosis.conftest import NOW

H100 = {"gpu": "h100"}
KEPT = Taint("dedicated", "team-x", "NoSchedule")


def cluster_of(*pods: dict[str, Any]) -> FoundRows:
    """Return the rows of a cluster with an open node, one of another product, a tainted one, and gangs of one pod."""
    found: list[Any] = [
        facts.node("open", labels={**H100, "rack": "r1"}),
        facts.node("old", labels={"gpu": "a100", "rack": "r1"}),
        facts.node("kept", labels={**H100, "rack": "r2"}, taints=(KEPT,)),
        facts.node("plain", gpus=0),
        facts.queue("q"),
        facts.topology("t", "rack"),
    ]
    for number, pod in enumerate(pods):
        found += [facts.podgroup(f"g{number}"), facts.pod(f"g{number}-0", f"g{number}", **pod)]
    return found_rows(facts.snapshot(*found))


def barred(rows: FoundRows, gang: str = "g0") -> list[str] | None:
    row = next(row for row in (rows.gangs or {}).values() if row.name == gang)
    if row.node_filter is None:
        return None
    return list((rows.filters or {})[row.node_filter].barred) if row.node_filter else []


@pytest.mark.parametrize(
    "pod, names",
    [
        ({}, ["kept"]),
        ({"node_selector": H100}, ["kept", "old"]),
        ({"tolerations": (Toleration("dedicated", "Equal", "team-x"),)}, []),
        ({"node_selector": {"gpu": "b200"}}, ["kept", "old", "open"]),
        ({"on": "open"}, []),
        ({"gpus": 0}, []),
    ],
)
def test_nodes_are_barred_by_selectors_and_taints(pod: dict[str, Any], names: list[str]) -> None:
    assert barred(cluster_of(pod)) == names


def test_gangs_with_the_same_nodes_share_a_filter() -> None:
    rows = cluster_of({"node_selector": H100}, {"node_selector": H100}, {})
    assert barred(rows, "g0") == barred(rows, "g1") != barred(rows, "g2")
    assert len(rows.filters or {}) == 2


def test_nothing_is_known_where_nodes_were_not_read() -> None:
    snapshot = facts.snapshot(facts.podgroup("g0"), facts.pod("p", "g0"), read=frozenset({"Pod", "PodGroup"}))
    assert barred(found_rows(snapshot)) is None


def test_filters_come_and_go_with_their_gangs(db: None) -> None:
    cluster = Cluster.objects.create(name="east", source="folder")
    rows_sync(cluster=cluster, found=cluster_of({"node_selector": H100}), now=NOW)
    assert NodeFilter.objects.get().barred == ["kept", "old"]
    assert rows_sync(cluster=cluster, found=cluster_of({"node_selector": H100}), now=NOW) == 0
    rows_sync(cluster=cluster, found=cluster_of({"on": "open"}), now=NOW)
    assert not NodeFilter.objects.exists()


def test_the_domain_chart_tells_them_apart(db: None, client: Client, alice: User) -> None:
    cluster = Cluster.objects.create(name="east", source="folder", read_as_of=NOW)
    rows_sync(cluster=cluster, found=cluster_of({"node_selector": H100}), now=NOW)
    snapshot = Snapshot.objects.create(cluster=cluster, as_of=NOW, engine="1", started_at=NOW)
    results_record(snapshot=snapshot, diagnosis=diagnosis(document("g0")), now=NOW)
    client.force_login(alice)
    content = client.get("/clusters/east/gangs/team-a/g0/").content.decode()
    figure = json.loads(content.partition('id="figure-domains" type="application/json">')[2].partition("</script>")[0])
    drawn = {trace["name"]: dict(zip(trace["y"], trace["x"], strict=True)) for trace in figure["data"]}
    assert (drawn["Free"], drawn["Free, not for it"]) == ({"r1": 8, "r2": 0}, {"r1": 8, "r2": 8})
    assert "Dotted: free, on nodes that it may not use." in content
    assert "are counted too" not in content
