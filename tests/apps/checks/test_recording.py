"""Checks on every poll: one row a check, written where it says something new, gone with nobody's leave."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from apps.accounts.models import User
from apps.accounts.scope import scope_of
from apps.checks.models import ClusterCheck
from apps.checks.rules import CHECKS
from apps.checks.selectors import check_list, check_rows
from apps.checks.services import checks_record
from apps.clusters.models import Cluster
from apps.collector.signals import reading_done
from tests.chain import world as w

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster.objects.create(name="east", source="folder")


def _record(cluster: Cluster, *objects: w.Object, after: int = 0) -> int:
    snapshot = w.snapshot(*objects)
    return checks_record(cluster=cluster, snapshot=snapshot, as_of=NOW + timedelta(seconds=after))


def test_every_check_has_a_row(cluster: Cluster) -> None:
    assert _record(cluster, *w.served()) == len(CHECKS)
    assert set(ClusterCheck.objects.values_list("check_id", flat=True)) == set(CHECKS)


def test_only_what_says_something_new_is_written(cluster: Cluster) -> None:
    _record(cluster, *w.served())
    assert _record(cluster, *w.served(), after=15) == 0
    assert set(ClusterCheck.objects.values_list("checked_at", flat=True)) == {NOW + timedelta(seconds=15)}

    lost = w.served(nodes=("", ""), ready=False)
    assert _record(cluster, *lost, after=30) > 0
    row = ClusterCheck.objects.get(check_id="V3")
    assert (row.state, row.since) == ("fail", NOW + timedelta(seconds=30))
    _record(cluster, *lost, after=45)
    row.refresh_from_db()
    assert (row.since, row.checked_at) == (NOW + timedelta(seconds=30), NOW + timedelta(seconds=45))


def test_poll_that_is_done_runs_the_checks(cluster: Cluster) -> None:
    reading_done.send(sender=Cluster, cluster=cluster, snapshot=w.snapshot(*w.served()), as_of=NOW)

    assert ClusterCheck.objects.count() == len(CHECKS)


def test_check_that_this_version_no_longer_has_goes(cluster: Cluster) -> None:
    _record(cluster)
    ClusterCheck.objects.filter(check_id="V1").update(check_id="V99")
    _record(cluster)

    assert not ClusterCheck.objects.filter(check_id="V99").exists()


def test_only_who_sees_the_whole_cluster_sees_checks(cluster: Cluster, alice: User, bob: User) -> None:
    _record(cluster, *w.served())

    assert check_list(scope=scope_of(alice)).count() == len(CHECKS)
    assert check_list(scope=scope_of(bob)).count() == 0


def test_what_fails_comes_first_and_the_grave_before_the_rest(cluster: Cluster, alice: User) -> None:
    _record(cluster, *w.served(nodes=("", ""), ready=False))
    rows = check_rows(scope=scope_of(alice))

    states = [item.row.state for item in rows]
    assert states == sorted(states, key=["fail", "unknown", "pass", "absent"].index)
    assert next(item.check.id for item in rows if item.row.state == "fail") == "C17"
