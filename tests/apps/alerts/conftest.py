"""A living store for tests of evaluation: gangs that are said things, time that passes, looks, and a channel."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from apps.alerts.models import Alert, AlertRule, Route
from apps.alerts.services.evaluation import Looked, alerts_evaluate
from apps.clusters.models import Cluster
from apps.delivery.models import Channel, Delivery
from apps.diagnosis.models import ExplanationRecord, ReasonTimeline, Snapshot
from apps.workloads.choices import GangState
from apps.workloads.models import Gang
from gangdash.engine.verdict import VERDICT_OF, ReasonCode, Verdict
from tests.apps.alerts.pasts import NOON

PLACED = {Verdict.STARTING: GangState.TELLS, Verdict.VIOLATED: GangState.TELLS, Verdict.HEALTHY: GangState.FINE}


class Store:
    """One cluster; minutes count from noon."""

    def __init__(self, name: str = "east") -> None:
        self.cluster = Cluster.objects.create(name=name, source="folder", read_as_of=NOON)
        Cluster.objects.filter(pk=self.cluster.pk).update(added_at=NOON - timedelta(days=30))
        self.minute = 0.0

    @property
    def now(self) -> datetime:
        return NOON + timedelta(minutes=self.minute)

    def gang(self, path: str, *, queue: str = "q", gpus: float = 8) -> Gang:
        namespace, _, name = path.rpartition("/")
        return Gang.objects.create(
            cluster=self.cluster, uid=f"uid-{self.cluster.name}-{path}"[:64], namespace=namespace or "team-a",
            name=name, queue=queue, gpus=gpus, first_seen_at=self.now, last_seen_at=self.now,
        )  # fmt: skip

    def says(
        self, gang: Gang, code: str, *, subject: str = "Node/all", who: str = "cluster_admin", **document: Any
    ) -> None:
        """Say something of a gang from now on, as an analysis would have written it."""
        verdict = VERDICT_OF[ReasonCode(code)]
        snapshot, _ = Snapshot.objects.get_or_create(
            cluster=self.cluster, as_of=self.now, engine="1",
            defaults={"started_at": self.now, "ended_at": self.now, "outcome": "done", "digest": "sha256:77d0c3e2"},
        )  # fmt: skip
        waits = GangState.TELLS if code == ReasonCode.STATUS_STALE else PLACED.get(verdict, GangState.WAITS)
        gpus = (gang.gpus or 0.0) if waits == GangState.WAITS else 0.0
        sentence = document.get("sentence", f"{gang.name} is {code}.")
        ReasonTimeline.objects.filter(gang=gang, closed_at=None).update(closed_at=self.now)
        ReasonTimeline.objects.create(
            gang=gang, snapshot=snapshot, verdict=verdict, code=code, who=who, state=waits, subject=subject,
            sentence=sentence, gpus=gpus, opened_at=self.now,
        )  # fmt: skip
        since = gang.waiting_since or self.now if waits == GangState.WAITS else None
        columns: dict[str, Any] = {"verdict": verdict, "code": code, "who": who, "subject": subject, "state": waits}
        columns |= {"sentence": sentence, "gpus_waiting": gpus, "waiting_since": since, "certainty": "proved"}
        for name, value in columns.items():
            setattr(gang, name, value)
        gang.save()
        ExplanationRecord.objects.filter(gang=gang, is_current=True).update(is_current=False)
        said = {"verdict": str(verdict), "code": code, "who": who, "subject": subject}
        whole = explained(gang, sentence=sentence, **said) | document
        ExplanationRecord.objects.create(
            snapshot=snapshot, gang=gang, verdict=verdict, code=code, who=who, certainty="proved", sentence=sentence,
            document=json.dumps(whole),
        )  # fmt: skip
        Cluster.objects.filter(pk=self.cluster.pk).update(diagnosed_as_of=self.now)

    def gone(self, gang: Gang) -> None:
        ReasonTimeline.objects.filter(gang=gang, closed_at=None).update(closed_at=self.now)
        Gang.objects.filter(pk=gang.pk).update(gone_at=self.now)

    def look(self, minute: float | None = None, *, is_read: bool = True) -> Looked | None:
        """Let time pass and look; the cluster was read a moment ago unless said otherwise."""
        self.minute = self.minute if minute is None else minute
        if is_read:
            Cluster.objects.filter(pk=self.cluster.pk).update(read_as_of=self.now)
        return alerts_evaluate(cluster=Cluster.objects.get(pk=self.cluster.pk), now=self.now)

    def alerts(self, rule: str = "") -> list[Alert]:
        rows = Alert.objects.filter(cluster=self.cluster).order_by("pk")
        return list(rows.filter(rule__key=rule) if rule else rows)


def explained(gang: Gang, *, sentence: str, **said: str) -> dict[str, Any]:
    """Return an explanation document."""
    verdict, code, who, subject = (said[name] for name in ("verdict", "code", "who", "subject"))
    need = {"id": "cluster.gpu", "scope": "all", "need": gang.gpus, "have": 3, "unit": "gpu", "source": subject}
    return {
        "gang": {"namespace": gang.namespace, "name": gang.name, "uid": gang.uid, "kind": "PodGroup", "owner": None},
        "verdict": verdict, "code": code, "who": who, "certainty": "proved", "sentence": sentence, "shard": "default",
        "stage": "S18", "waiting_since": None, "binding": [need], "slack": [],
        "members": {"needed": 1, "fit": 0, "unfit": 1, "not_evaluated": 0}, "nodes": [], "holders": [], "fixes": [],
        "fixes_refused": 0, "waiting": {"helps": "unknown", "until": None, "on": []}, "also": [],
        "scheduler": {"text": None, "at": None, "match": "agree"}, "as_of": "", "digest": "sha256:77d0c3e2aa",
        "engine": "1.0.0", "not_read": [], "not_modelled": [],
    }  # fmt: skip


@pytest.fixture
def store(db: None) -> Store:
    return Store()


@pytest.fixture
def channel(db: None) -> Channel:
    """Return a channel that every alert leads to."""
    channel = Channel.objects.create(name="ops", kind="webhook", host="hooks.example")
    Route.objects.create(name="everything", channel=channel)
    return channel


@pytest.fixture
def only(db: None) -> Callable[[str], AlertRule]:
    """Return what switches all rules off but one."""

    def switch(key: str, **settings: Any) -> AlertRule:
        AlertRule.objects.exclude(key=key).update(is_enabled=False)
        AlertRule.objects.filter(key=key).update(is_enabled=True, **settings)
        return AlertRule.objects.get(key=key)

    return switch


def told(channel: Channel) -> list[tuple[str, str]]:
    """Return what a channel was told, oldest first: kind and title."""
    rows = Delivery.objects.filter(channel=channel).order_by("pk")
    return [(row.kind, row.title) for row in rows]
