"""The record of polls, the lock that keeps two from reading one cluster, and what freshness is made of."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from pytest_django import Settings

from apps.accounts.scope import EVERYTHING, NOTHING, Scope
from apps.clusters.choices import Freshness, PollOutcome
from apps.clusters.models import Cluster, KindFreshness, PollRun
from apps.clusters.selectors import cluster_list, freshness_list, freshness_state
from apps.clusters.services import (
    BACK_OFF_MAX,
    back_off,
    poll_claim,
    poll_run_fail,
    poll_run_finish,
    poll_run_start,
    poll_runs_prune,
)
from gangdash.kube.reading import KindStatus

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
HOLD = timedelta(seconds=200)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster.objects.create(name="east", source="folder")


def status(kind: str, *, reason: str = "", required: bool = True, count: int | None = 3) -> KindStatus:
    return KindStatus(kind, required, NOW, None if reason else count, reason)


def finish(run: PollRun, *kinds: KindStatus, now: datetime = NOW) -> None:
    poll_run_finish(run=run, kinds=kinds, now=now, as_of=now, server_version="v1.34.1", skew_seconds=0.0)


def test_one_of_two_claims_wins_and_the_lock_ends_by_time(cluster: Cluster) -> None:
    assert poll_claim(cluster=cluster, now=NOW, hold=HOLD)
    assert not poll_claim(cluster=cluster, now=NOW, hold=HOLD)
    assert poll_claim(cluster=cluster, now=NOW + HOLD + timedelta(seconds=1), hold=HOLD)


def test_a_finished_poll_lets_the_next_one_in(cluster: Cluster) -> None:
    poll_claim(cluster=cluster, now=NOW, hold=HOLD)
    finish(poll_run_start(cluster=cluster, now=NOW), status("Pod"))
    assert poll_claim(cluster=cluster, now=NOW, hold=HOLD)


def test_a_removed_cluster_cannot_be_claimed(cluster: Cluster) -> None:
    Cluster.objects.update(is_read=False)
    assert not poll_claim(cluster=cluster, now=NOW, hold=HOLD)


def test_failures_wait_longer_each_time_and_a_good_poll_ends_that(cluster: Cluster) -> None:
    waits = []
    for _ in range(4):
        run = poll_run_start(cluster=cluster, now=NOW)
        poll_run_fail(run=run, code="unreachable", detail="no route", now=NOW, jitter=1.0)
        due = Cluster.objects.get().next_poll_at
        assert due is not None
        waits.append((due - NOW).total_seconds())
    assert waits == [0, 30, 60, 120]
    assert Cluster.objects.get().fault == "no route"
    finish(poll_run_start(cluster=cluster, now=NOW), status("Pod"))
    cluster.refresh_from_db()
    assert (cluster.failures, cluster.fault, cluster.next_poll_at) == (0, "", None)


def test_the_pause_has_an_end() -> None:
    assert back_off(failures=1000, jitter=1.0) == BACK_OFF_MAX
    assert back_off(failures=1000, jitter=0.0) == BACK_OFF_MAX * 0.75


def test_a_failed_poll_leaves_what_was_read_before(cluster: Cluster) -> None:
    finish(poll_run_start(cluster=cluster, now=NOW), status("Pod"))
    later = NOW + timedelta(seconds=15)
    poll_run_fail(run=poll_run_start(cluster=cluster, now=later), code="unreachable", detail="x", now=later, jitter=0.5)
    assert Cluster.objects.get().read_as_of == NOW
    assert KindFreshness.objects.get().is_read


def test_a_poll_left_open_by_a_lost_worker_is_closed_by_the_next(cluster: Cluster) -> None:
    poll_run_start(cluster=cluster, now=NOW)
    poll_run_start(cluster=cluster, now=NOW + HOLD)
    assert list(PollRun.objects.order_by("pk").values_list("outcome", flat=True)) == ["lost", "running"]


@pytest.mark.parametrize(
    "kinds, outcome",
    [
        ([status("Pod"), status("Event", required=False)], PollOutcome.READ),
        ([status("Pod"), status("Event", required=False, reason="403")], PollOutcome.READ),
        ([status("Pod", reason="403")], PollOutcome.PARTIAL),
    ],
)
def test_a_poll_is_partial_when_something_needed_is_missing(
    cluster: Cluster, kinds: list[KindStatus], outcome: str
) -> None:
    finish(poll_run_start(cluster=cluster, now=NOW), *kinds)
    assert PollRun.objects.get().outcome == outcome


def test_a_kind_that_fails_keeps_the_time_and_count_of_its_last_good_reading(cluster: Cluster) -> None:
    finish(poll_run_start(cluster=cluster, now=NOW), status("Pod", count=7))
    later = NOW + timedelta(seconds=15)
    finish(poll_run_start(cluster=cluster, now=later), status("Pod", reason="403"), now=later)
    kind = KindFreshness.objects.get()
    assert (kind.is_read, kind.reason, kind.read_at, kind.count, kind.checked_at) == (False, "403", NOW, 7, later)


def test_no_objects_and_not_read_are_two_things(cluster: Cluster) -> None:
    finish(poll_run_start(cluster=cluster, now=NOW), status("Pod", count=0), status("Queue", reason="403"))
    assert dict(KindFreshness.objects.values_list("kind", "count")) == {"Pod": 0, "Queue": None}


@pytest.mark.parametrize(
    "age, state",
    [(0, Freshness.LIVE), (45, Freshness.LIVE), (46, Freshness.STALE), (75, Freshness.STALE), (76, Freshness.BLIND)],
)
def test_missed_polls_make_a_cluster_stale_then_blind(cluster: Cluster, age: int, state: str) -> None:
    cluster.read_as_of = NOW - timedelta(seconds=age)
    assert freshness_state(cluster=cluster, now=NOW) == state


def test_a_cluster_that_was_never_read_waits_or_is_blind(cluster: Cluster) -> None:
    assert freshness_state(cluster=cluster, now=NOW) == Freshness.FIRST_READ
    cluster.failures = 5
    assert freshness_state(cluster=cluster, now=NOW) == Freshness.BLIND
    cluster.is_read = False
    assert freshness_state(cluster=cluster, now=NOW) == Freshness.REMOVED


def test_freshness_names_the_kinds_that_are_missing(cluster: Cluster, settings: Settings) -> None:
    finish(poll_run_start(cluster=cluster, now=NOW), status("Pod"), status("Event", reason="403", required=False))
    with time_machine.travel(NOW + timedelta(seconds=6), tick=False):
        (row,) = freshness_list(scope=EVERYTHING)
    assert (row.state, row.age, row.kinds_total) == (Freshness.LIVE, timedelta(seconds=6), 2)
    assert [kind.kind for kind in row.not_read] == ["Event"]


def test_clusters_are_seen_by_those_who_may_see_a_namespace_of_them(cluster: Cluster) -> None:
    Cluster.objects.create(name="west", source="folder")
    bob = Scope(namespaces=frozenset({("east", "team-a")}))
    assert [c.name for c in cluster_list(scope=bob)] == ["east"]
    assert cluster_list(scope=EVERYTHING).count() == 2
    assert cluster_list(scope=NOTHING).count() == 0


def test_old_records_go_and_newer_ones_stay(cluster: Cluster) -> None:
    for days in (5, 1):
        poll_run_start(cluster=cluster, now=NOW - timedelta(days=days))
    assert poll_runs_prune(before=NOW - timedelta(days=3)) == 1
    assert poll_runs_prune(before=NOW - timedelta(days=3)) == 0
    assert PollRun.objects.count() == 1
