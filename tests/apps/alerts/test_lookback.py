"""A look back says what live evaluation did, and says what it cannot know.

The differential lets live evaluation go through an invented span, look by look, and then asks each rule to look back on
what the store has kept of it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from apps.alerts import backtest as backtests
from apps.alerts.lookback import Lookback, lookback
from apps.alerts.models import Alert, AlertClock, AlertRule, Observation
from apps.alerts.rules import RULES
from apps.alerts.services.rules import setting_of
from apps.alerts.settings import RuleSetting
from apps.clusters.models import Cluster
from apps.inventory.models import CapacitySample, Queue, StateChange
from apps.workloads.models import Attempt, Gang
from tests.apps.alerts.conftest import Store
from tests.apps.alerts.pasts import NOON, Past, at

pytestmark = pytest.mark.django_db
CODES = (
    "PLACEABLE_NOT_PLACED", "NODE_TOO_SMALL", "QUEUE_LIMIT", "DOMAIN_BUSY", "FAIR_SHARE_REACHED", "GPUS_BUSY",
    "SCHEDULING_GATE", "UPSTREAM_STAGE", "BIND_LOOP", "IMAGE_PULL", "RUNNING", "STATUS_STALE", "NODES_CORDONED",
)  # fmt: skip


class Invented:
    """An eventful span for one cluster; the same seed invents the same one."""

    def __init__(self, store: Store, seed: int) -> None:
        self.store, self.random = store, random.Random(seed)
        for name, quota, limit in (("q", 16.0, 24.0), ("r", 8.0, -1.0)):
            Queue.objects.create(cluster=store.cluster, name=name, parent="root", gpu_quota=quota, gpu_limit=limit)
        self.gangs = [self._gang(f"team-{'ab'[n % 2]}/g{n}", "qr"[n % 2]) for n in range(8)]

    def _gang(self, path: str, queue: str) -> Gang:
        gang = self.store.gang(path, queue=queue, gpus=self.random.choice([8, 16, 48]))
        Attempt.objects.create(
            cluster=self.store.cluster, gang=gang, lineage=path, seen_at=self.store.now, created_at=self.store.now
        )
        return gang

    def happens(self) -> None:
        """Let something happen at the store's time."""
        for gang in self.gangs:
            if self.random.random() < 0.3:
                match = self.random.choice(["agree", "agree", "silent", "disagree"])
                scheduler = {"text": None, "at": None, "match": match}
                subject = self.random.choice(["Node/x", "Node/y"])
                self.store.says(gang, self.random.choice(CODES), subject=subject, scheduler=scheduler)
            if self.random.random() < 0.2:
                self._step(Attempt.objects.get(gang=gang))
        if self.random.random() < 0.5:
            self._sample()
        if self.random.random() < 0.1:
            Queue.objects.filter(name="q").update(gpu_limit=self.random.choice([4.0, 24.0, 40.0]))
        if self.random.random() < 0.1:
            StateChange.objects.create(
                cluster=self.store.cluster, kind="Deployment", subject="kai/kai-scheduler", at=self.store.now,
                state=self.random.choice(["down", "ready"]),
            )  # fmt: skip

    def _step(self, attempt: Attempt) -> None:
        """Make the next step that is not made, or lose the nodes."""
        now = self.store.now
        open_steps = [name for name in ("decided_at", "bound_at", "ready_at") if getattr(attempt, name) is None]
        if attempt.gated_at is None and attempt.decided_at is None and self.random.random() < 0.3:
            attempt.gated_at = now
        elif attempt.gated_at is not None and attempt.gates_removed_at is None:
            attempt.gates_removed_at = now
        elif open_steps:
            setattr(attempt, open_steps[0], now)
        else:
            attempt.evicted_at, attempt.eviction_times = now, [*attempt.eviction_times, now.timestamp()]
        attempt.save()

    def _sample(self) -> None:
        free, lost = self.random.choice([0, 8, 60]), self.random.choice([0, 0, 2, 30])
        held = {name: [self.random.choice([0.0, 8.0, 24.0]), None] for name in ("q", "r")}
        domains = {"": [100, free, lost], "t|rack": [16, 0, self.random.choice([0, 16])]}
        CapacitySample.objects.create(cluster=self.store.cluster, at=self.store.now, queues=held, domains=domains)


def spans(store: Store, rule: AlertRule) -> list[tuple[str, datetime, datetime | None]]:
    """Return what live evaluation did: signature, when it fired, when it ended."""
    rows = Alert.objects.filter(rule=rule, cluster=store.cluster).exclude(fired_at=None)
    return sorted((row.signature, row.fired_at or NOON, row.resolved_at) for row in rows)


def looked(store: Store, rule: AlertRule, end: datetime) -> Lookback:
    return lookback(cluster=Cluster.objects.get(pk=store.cluster.pk), setting=setting_of(rule), start=NOON, end=end)


@pytest.mark.slow
@pytest.mark.parametrize("seed, tick, looks", [(1, 60, 168), (3, 1, 100)])
def test_a_look_back_equals_what_live_evaluation_did(
    store: Store, monkeypatch: pytest.MonkeyPatch, seed: int, tick: int, looks: int
) -> None:
    monkeypatch.setattr(backtests, "TICK", timedelta(minutes=tick))
    AlertRule.objects.create(
        key="custom-old",
        title="Old",
        condition={"age_seconds": 1800},
        severity="info",
        for_seconds=120,
        keep_seconds=60,
    )
    AlertRule.objects.filter(key="slo_burn").update(values={"missed": 1, "fast_burn": 1.0})
    invented, blind = Invented(store, seed), 0
    for number in range(looks):
        store.minute = number * tick
        blind = blind - 1 if blind else invented.random.choice([0] * 30 + [3])
        if not blind:
            invented.happens()
        store.look(is_read=not blind)
    counts = {}
    for rule in AlertRule.objects.all():
        found = looked(store, rule, store.now).result
        assert found is not None, rule.key
        ours = sorted((firing.signature, firing.at, firing.until) for firing in found.firings)
        assert ours == spans(store, rule), rule.key
        counts[rule.key] = len(ours)
    assert len([key for key, count in counts.items() if count]) >= 8, counts


# What cannot be known


def test_rules_whose_rows_are_not_kept_cannot_be_told(store: Store) -> None:
    store.says(store.gang("a"), "NODE_TOO_SMALL")
    end = store.now + timedelta(hours=1)
    for key, words in (("blind", "when the cluster was blind"), ("starvation", "capacity and shares")):
        found = looked(store, AlertRule.objects.get(key=key), end)
        assert found.result is None
        assert any(words in sentence for sentence in found.unknown)
    assert looked(store, AlertRule.objects.get(key="never_fits"), end).count == 1


def test_a_look_begins_where_what_it_needs_begins_and_says_so(store: Store) -> None:
    store.minute = 600
    store.says(store.gang("a"), "NODE_TOO_SMALL")
    found = looked(store, AlertRule.objects.get(key="never_fits"), at(1200))
    assert found.result is not None
    assert found.result.start == at(600)
    assert found.unknown[0].startswith("Cannot be told before 2026-11-30 22:00 UTC: the reasons of gangs are kept")
    assert "Not known: what queues may use." in found.unknown


def test_a_rule_for_other_clusters_is_not_looked_back_on(store: Store) -> None:
    AlertRule.objects.filter(key="never_fits").update(clusters=["west"])
    found = looked(store, AlertRule.objects.get(key="never_fits"), at(60))
    assert (found.result, found.unknown) == (None, ("The rule is not about this cluster.",))


def test_what_had_fired_before_is_shown_and_not_counted(store: Store) -> None:
    store.minute = -600
    store.says(store.gang("old"), "NODE_TOO_SMALL")
    store.minute = 30
    store.says(store.gang("new"), "NODE_TOO_SMALL", subject="Node/new")
    found = looked(store, AlertRule.objects.get(key="never_fits"), at(60))
    assert found.result is not None
    assert [(firing.at, firing.is_carried) for firing in found.result.firings] == [(NOON, True), (at(30), False)]
    assert found.count == 1


def test_time_spent_blind_is_said(store: Store) -> None:
    store.minute = -60
    AlertClock.objects.create(cluster=store.cluster, started_at=store.now)
    store.says(store.gang("a"), "NODE_TOO_SMALL")
    Observation.objects.create(
        cluster=store.cluster, topic="blind", subject="poll", value="x", opened_at=at(10), closed_at=at(20)
    )
    found = looked(store, AlertRule.objects.get(key="never_fits"), at(60))
    assert "It would have kept still for 10 min while the cluster was blind." in found.unknown


def test_what_would_be_too_much_work_is_looked_at_less_often_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backtests, "WORK_MAX", 1000)
    past = Past()
    for n in range(10):
        past.says(past.gang(f"g{n}"), "NODE_TOO_SMALL", 0)
    found = backtests.backtest(past.history(), RuleSetting("never_fits", 0, 0), start=at(0), end=at(600))
    assert found.looked_every == timedelta(minutes=8)
    assert len(found.firings) == 1


@pytest.mark.parametrize("key", RULES)
def test_every_rule_looks_back_on_an_empty_past(key: str) -> None:
    found = backtests.backtest(Past().history(), RuleSetting(key, 0, 0), start=at(0), end=at(30))
    assert found.firings == ()


def test_trying_a_rule_stores_nothing(store: Store, django_assert_num_queries: Callable[[int], object]) -> None:
    store.says(store.gang("a"), "NODE_TOO_SMALL")
    before = (Alert.objects.count(), Observation.objects.count())
    looked(store, AlertRule.objects.get(key="never_fits"), at(60))
    assert (Alert.objects.count(), Observation.objects.count()) == before
