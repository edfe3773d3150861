"""Tasks and retention: each may run twice or be late, and what is old goes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import time_machine

from apps.accounts.models import User
from apps.alerts import tasks
from apps.alerts.models import Alert, AlertRule, Mute, Observation
from apps.alerts.services.retention import alerts_prune
from apps.alerts.services.rules import rules_ensure
from apps.clusters.models import Cluster
from tests.apps.alerts.conftest import Store

pytestmark = pytest.mark.django_db


def test_a_tick_looks_at_every_cluster_and_ends_the_alerts_of_those_no_longer_read(store: Store) -> None:
    west = Store("west")
    for place in (store, west):
        place.says(place.gang("a"), "NODE_TOO_SMALL")
    Cluster.objects.update(read_as_of=store.now)
    with time_machine.travel(store.now, tick=False):
        tasks.evaluate_all()
        tasks.evaluate_all()
        assert [(row.cluster.name, row.state) for row in Alert.objects.order_by("pk")] == [
            ("east", "firing"), ("west", "firing"),
        ]  # fmt: skip
        Cluster.objects.filter(name="west").update(is_read=False)
        tasks.evaluate_all()
    assert [alert.state for alert in west.alerts()] == ["resolved"]
    assert [alert.state for alert in store.alerts()] == ["firing"]


def test_a_cluster_that_is_gone_is_no_fault(db: None) -> None:
    tasks.evaluate_cluster(99)


def test_what_ended_long_ago_is_deleted(store: Store, alice: User, settings: Any) -> None:
    settings.GANGDASH_KEEP_HISTORY_DAYS = 30
    rule = AlertRule.objects.get(key="blind")
    for days, state in ((31, "resolved"), (29, "resolved"), (99, "firing")):
        moment = store.now - timedelta(days=days)
        Alert.objects.create(cluster=store.cluster, rule=rule, signature=f"s{days}", state=state, severity="page",
                             title="t", since=moment, resolved_at=moment if state == "resolved" else None)  # fmt: skip
        Observation.objects.create(cluster=store.cluster, topic="queue", subject=f"q{days}", value="", opened_at=moment,
                                   closed_at=moment if state == "resolved" else None)  # fmt: skip
        Mute.objects.create(kind="queue", value="q", reason="r", created_at=moment, created_by=alice, ends_at=moment)
    with time_machine.travel(store.now, tick=False):
        tasks.prune()
    assert sorted(Alert.objects.values_list("signature", flat=True)) == ["s29", "s99"]
    assert sorted(Observation.objects.values_list("subject", flat=True)) == ["q29", "q99"]
    assert Mute.objects.count() == 1


def test_a_scheduler_that_speaks_and_falls_silent_all_the_time_does_not_fill_the_disk(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.alerts.services.retention.OBSERVATIONS_MAX", 3)
    for n in range(6):
        moment = store.now + timedelta(minutes=n)
        Observation.objects.create(
            cluster=store.cluster, topic="stance", subject="u", value="silent", opened_at=moment, closed_at=moment
        )
    assert alerts_prune(now=store.now) == 3
    assert Observation.objects.earliest("closed_at").closed_at == store.now + timedelta(minutes=3)


def test_rules_of_the_list_are_there_once_and_keep_how_they_are_set(db: None) -> None:
    AlertRule.objects.filter(key="blind").update(severity="info", title="old words")
    AlertRule.objects.filter(key="flapping").delete()
    assert (rules_ensure(), rules_ensure()) == (1, 0)
    blind = AlertRule.objects.get(key="blind")
    assert (blind.severity, blind.title) == ("info", "Blind")
    assert AlertRule.objects.filter(condition__isnull=True).count() == 13
