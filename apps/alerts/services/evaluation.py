"""One look at one cluster: what the rules find becomes alerts, and what changed is told.

Everything that one look changes is written in one transaction, with the duties to tell it: killed anywhere, either all
of it happened or none. Of two looks at the same time one wins by the version of the cluster's clock; the other one's
facts were as good, and the next tick looks again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from django.db import transaction
from django.db.models import F

from apps.alerts.choices import AlertState
from apps.alerts.history import Cursor, day_of
from apps.alerts.loading import baselines_load, history_load
from apps.alerts.machine import Step, Track, step
from apps.alerts.models import Alert, AlertClock, AlertGang, AlertRule
from apps.alerts.rules.base import Finding
from apps.alerts.rules.blindness import blind_since
from apps.alerts.rules.facts import Baseline, Facts
from apps.alerts.services.endings import ending_of
from apps.alerts.services.observing import cluster_observe
from apps.alerts.services.rules import setting_of
from apps.alerts.services.telling import alerts_tell
from apps.alerts.settings import RuleSetting
from apps.clusters.models import Cluster

logger = structlog.get_logger(__name__)

LIVE_SPAN = timedelta(days=1)
"""How far back a live look reads, unless a rule is set to look further."""
BATCH = 500
SWITCHED_OFF = "The rule was switched off, or no longer covers this cluster."
NOT_READ_ANY_MORE = "The cluster is no longer read."


@dataclass(frozen=True, slots=True)
class Looked:
    """What one look did, in numbers."""

    fired: int
    resolved: int
    told: int


def alerts_evaluate(*, cluster: Cluster, now: datetime) -> Looked | None:
    """Look at a cluster; None where another look won."""
    clock, _ = AlertClock.objects.get_or_create(cluster=cluster, defaults={"started_at": now})
    cluster_observe(cluster=cluster, clock=clock, now=now)
    rules = list(AlertRule.objects.all())
    facts = facts_now(cluster=cluster, clock=clock, rules=rules, now=now)
    with transaction.atomic():
        if not _take(clock, facts, now):
            return None
        looked = _look(cluster, rules, facts)
    if looked.fired or looked.resolved:
        logger.info("alerts_changed", cluster=cluster.name, fired=looked.fired, resolved=looked.resolved)
    return looked


def _take(clock: AlertClock, facts: Facts, now: datetime) -> bool:
    """Make this look the one that counts; false where another one came first."""
    mine = AlertClock.objects.filter(pk=clock.pk, version=clock.version)
    return bool(mine.update(version=F("version") + 1, evaluated_at=now, blind_since=blind_since(facts)))


def facts_now(*, cluster: Cluster, clock: AlertClock, rules: Iterable[AlertRule], now: datetime) -> Facts:
    """Return what is true of a cluster now, with as much of its past as the rules are set to look at."""
    day = day_of(now)
    known = {day: _baselines(cluster, clock, day)}
    span = max([LIVE_SPAN, *(setting_of(rule).longest_window for rule in rules)])
    history = history_load(cluster=cluster, since=now - span, until=now, now=now, known_baselines=known)
    return Cursor(history).at(now)


def _baselines(cluster: Cluster, clock: AlertClock, day: datetime) -> Mapping[str, Baseline]:
    """Return what is usual, worked out once a day."""
    if clock.baselines_on != day:
        found = baselines_load(cluster=cluster, day=day)
        clock.baselines = {stage: [item.seconds, item.runs] for stage, item in found.items()}
        AlertClock.objects.filter(pk=clock.pk).update(baselines_on=day, baselines=clock.baselines)
    return {stage: Baseline(seconds, runs) for stage, (seconds, runs) in clock.baselines.items()}


def _look(cluster: Cluster, rules: Sequence[AlertRule], facts: Facts) -> Looked:
    rows = Alert.objects.filter(cluster=cluster, resolved_at=None).select_related("rule")
    by_rule: dict[int, list[Alert]] = {}
    for alert in rows:
        by_rule.setdefault(alert.rule_id, []).append(alert)
    is_blind = blind_since(facts) is not None
    fired = resolved = 0
    for rule in rules:
        setting, alerts = setting_of(rule), by_rule.get(rule.pk, [])
        if not rule.is_enabled or not setting.is_about(cluster.name):
            resolved += _close(alerts, SWITCHED_OFF, facts.at)
        elif not (is_blind and setting.is_silent_when_blind):
            done = _apply(cluster, rule, setting, alerts, facts)
            fired, resolved = fired + len(done.fired), resolved + len(done.resolved)
    return Looked(fired, resolved, alerts_tell(cluster=cluster, now=facts.at))


def _apply(cluster: Cluster, rule: AlertRule, setting: RuleSetting, alerts: Sequence[Alert], facts: Facts) -> Step:
    """Bring the alerts of one rule to what it finds now."""
    known = {alert.signature: alert for alert in alerts}
    tracks = {alert.signature: _track(alert) for alert in alerts}
    done = step(tracks, setting.find(facts), setting.timing, facts.at)
    Alert.objects.filter(pk__in=[known[track.signature].pk for track in done.dropped]).delete()
    for track in done.resolved:
        _resolve(known[track.signature], facts)
    for track in done.tracks.values():
        alert = known.get(track.signature) or Alert(cluster=cluster, rule=rule, signature=track.signature)
        _put(alert, track, facts, is_new=track.signature not in known)
    return done


def _track(alert: Alert) -> Track:
    return Track(alert.signature, alert.since, alert.fired_at, alert.calm_since)


def _put(alert: Alert, track: Track, facts: Facts, *, is_new: bool) -> None:
    """Write where an alert stands; nothing is written where nothing changed."""
    before = _columns(alert)
    alert.since, alert.fired_at, alert.calm_since = track.since, track.fired_at, track.calm_since
    alert.state = AlertState.FIRING if track.fired_at else AlertState.PENDING
    if track.finding is not None:
        _describe(alert, track.finding)
    if alert.state == AlertState.FIRING and not alert.thread:
        alert.thread = _thread(alert)
    if is_new or before != _columns(alert):
        alert.save()
    _members_put(alert, track.finding, facts.at)


_COLUMNS = (
    "since", "fired_at", "calm_since", "state", "severity", "title", "text", "verdict", "code", "subject", "who",
    "queue", "gang_count", "gpus", "thread",
)  # fmt: skip


def _columns(alert: Alert) -> list[object]:
    return [getattr(alert, name) for name in _COLUMNS]


def _describe(alert: Alert, finding: Finding) -> None:
    alert.severity = str(finding.severity or alert.rule.severity)
    alert.title, alert.text = finding.title[:255], finding.text[:1000]
    alert.verdict, alert.code, alert.who = str(finding.verdict), str(finding.code), str(finding.who)
    alert.subject, alert.queue = finding.subject[:512], finding.queue[:253]
    alert.gang_count, alert.gpus = len(finding.gangs), finding.gpus


def _thread(alert: Alert) -> str:
    """Return the thread of a cause: that of another rule's alert about it, else a new one."""
    same = Alert.objects.filter(cluster=alert.cluster, signature=alert.signature, state=AlertState.FIRING)
    shared = same.exclude(thread="").order_by("pk").values_list("thread", flat=True).first()
    return shared or f"alert:{alert.cluster_id}:{alert.rule_id}:{alert.fired_at:%Y%m%dT%H%M%S.%f}:{_digest(alert)}"


def _digest(alert: Alert) -> str:
    return hashlib.sha256(alert.signature.encode()).hexdigest()[:12]


def _members_put(alert: Alert, finding: Finding | None, at: datetime) -> None:
    """Keep which gangs an alert is about; those that come back go on with the row they had."""
    wanted = set(finding.gangs) if finding is not None else set()
    rows = {row.gang_id: row for row in AlertGang.objects.filter(alert=alert)}
    left = [row.pk for key, row in rows.items() if row.left_at is None and key not in wanted]
    back = [row.pk for key, row in rows.items() if row.left_at is not None and key in wanted]
    AlertGang.objects.filter(pk__in=left).update(left_at=at)
    AlertGang.objects.filter(pk__in=back).update(left_at=None)
    new = [AlertGang(alert=alert, gang_id=key, joined_at=at) for key in sorted(wanted - set(rows))]
    AlertGang.objects.bulk_create(new, BATCH, ignore_conflicts=True)


def _resolve(alert: Alert, facts: Facts) -> None:
    _end(alert, ending_of(alert=alert, facts=facts), facts.at)


def _close(alerts: Iterable[Alert], why: str, at: datetime) -> int:
    """End alerts for a reason that is not the cluster's; return how many had fired."""
    closed = 0
    for alert in alerts:
        if alert.state == AlertState.PENDING:
            alert.delete()
        else:
            _end(alert, why, at)
            closed += 1
    return closed


def _end(alert: Alert, why: str, at: datetime) -> None:
    alert.state, alert.resolved_at, alert.resolution = AlertState.RESOLVED, at, why[:1000]
    alert.save(update_fields=["state", "resolved_at", "resolution"])
    AlertGang.objects.filter(alert=alert, left_at=None).update(left_at=at)


def cluster_abandon(*, cluster: Cluster, now: datetime) -> int:
    """End the alerts of a cluster that is not read any more, and tell that they ended."""
    with transaction.atomic():
        rows = list(Alert.objects.select_for_update().filter(cluster=cluster, resolved_at=None))
        closed = _close(rows, NOT_READ_ANY_MORE, now)
        alerts_tell(cluster=cluster, now=now)
    return closed
