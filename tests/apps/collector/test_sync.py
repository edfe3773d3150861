"""Rows follow the readings: only what changed is written, what is gone goes, what could not be read stays."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from apps.clusters.models import Cluster
from apps.collector.rows import found_rows
from apps.collector.sync import rows_sync
from apps.inventory.models import Domain, Node, Queue
from apps.workloads.models import Gang, Pod
from tests.apps import facts

pytestmark = pytest.mark.django_db
NOW = datetime.fromtimestamp(facts.AS_OF, UTC)
LATER = NOW + timedelta(seconds=15)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster.objects.create(name="east", source="folder", read_as_of=NOW)


def sync(cluster: Cluster, *found: Any, now: datetime = NOW, read: frozenset[str] = facts.EVERY_KIND) -> int:
    return rows_sync(cluster=cluster, found=found_rows(facts.snapshot(*found, read=read)), now=now)


FULL = (
    facts.queue("q"),
    facts.topology("t", "rack"),
    facts.node("n1", labels={"rack": "r1"}),
    facts.podgroup("g", min_member=2),
    facts.pod("a", "g", on="n1"),
    facts.pod("b", "g"),
)


def test_the_same_reading_twice_writes_nothing_the_second_time(cluster: Cluster) -> None:
    assert sync(cluster, *FULL) == 7
    before = list(Gang.objects.values()), list(Pod.objects.values()), list(Node.objects.values())
    assert sync(cluster, *FULL, now=LATER) == 0
    assert before == (list(Gang.objects.values()), list(Pod.objects.values()), list(Node.objects.values()))


def test_only_what_changed_is_written(cluster: Cluster) -> None:
    sync(cluster, *FULL)
    # The pod is bound: the pod, its gang, its node and the node's rack change; queue, topology, other pod do not.
    assert sync(cluster, *FULL[:-1], facts.pod("b", "g", on="n1"), now=LATER) == 4
    assert Pod.objects.get(name="b").node == "n1"
    assert Domain.objects.get().gpus_used == 2


def test_a_gang_that_is_gone_stays_with_its_end_and_its_pods_go(cluster: Cluster) -> None:
    sync(cluster, *FULL)
    sync(cluster, *FULL[:3], now=LATER)
    gang = Gang.objects.get()
    assert (gang.gone_at, gang.last_seen_at) == (LATER, NOW)
    assert not Pod.objects.exists()


def test_a_gang_of_the_same_name_is_another_gang(cluster: Cluster) -> None:
    sync(cluster, *FULL)
    sync(cluster, facts.podgroup("g", uid="second"), now=LATER)
    assert set(Gang.objects.values_list("uid", "gone_at")) == {("gang-team-a-g", LATER), ("second", None)}


def test_a_gang_that_comes_back_keeps_its_identity_and_first_sight(cluster: Cluster) -> None:
    sync(cluster, *FULL)
    first = Gang.objects.get()
    sync(cluster, now=LATER)
    sync(cluster, *FULL, now=LATER + timedelta(seconds=15))
    again = Gang.objects.get()
    assert (again.pk, again.first_seen_at, again.gone_at) == (first.pk, NOW, None)


@pytest.mark.parametrize("kind, model", [("Queue", Queue), ("Node", Node), ("PodGroup", Gang), ("Pod", Pod)])
def test_what_could_not_be_read_is_not_taken_as_gone(cluster: Cluster, kind: str, model: Any) -> None:
    sync(cluster, *FULL)
    before = model.objects.count()
    sync(cluster, now=LATER, read=facts.EVERY_KIND - {kind})
    assert model.objects.count() == before
    assert not model.objects.filter(gone_at__isnull=False).exists() if model is Gang else True


def test_pod_numbers_survive_a_reading_without_pods(cluster: Cluster) -> None:
    sync(cluster, *FULL)
    sync(cluster, facts.podgroup("g", min_member=3), now=LATER, read=facts.EVERY_KIND - {"Pod"})
    gang = Gang.objects.get()
    assert (gang.min_member, gang.pods_total, gang.gpus) == (3, 2, 2.0)


def test_pod_numbers_are_unknown_where_pods_were_never_read(cluster: Cluster) -> None:
    sync(cluster, facts.podgroup("g"), read=frozenset({"PodGroup"}))
    assert Gang.objects.get().gpus is None


def test_the_end_of_a_run_is_kept(cluster: Cluster) -> None:
    running = [facts.podgroup("g", min_member=1), facts.pod("a", "g", on="n1")]
    sync(cluster, *running)
    assert Gang.objects.get().last_ran_at is None
    sync(cluster, running[0], facts.pod("a", "g", uid="again"), now=LATER)
    assert Gang.objects.get().last_ran_at == LATER
    sync(cluster, *running, now=LATER + timedelta(seconds=15))
    assert Gang.objects.get().last_ran_at == LATER


def test_a_pod_finds_its_gang_also_when_it_was_there_first(cluster: Cluster) -> None:
    sync(cluster, facts.pod("a", "g"))
    assert Pod.objects.get().gang is None
    sync(cluster, facts.pod("a", "g"), facts.podgroup("g"), now=LATER)
    assert Pod.objects.get().gang == Gang.objects.get()


def test_clusters_do_not_touch_each_other(cluster: Cluster) -> None:
    west = Cluster.objects.create(name="west", source="folder")
    sync(cluster, *FULL)
    sync(west, *FULL)
    sync(west, now=LATER)
    assert Gang.objects.get(cluster=cluster).gone_at is None
    assert Node.objects.filter(cluster=cluster).count() == 1
