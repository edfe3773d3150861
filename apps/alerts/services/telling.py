"""Who is told what of an alert, and when: routes, mutes, the first message, updates, the end, escalation.

Called inside the transaction of a look: the duty to tell is a row that comes with the change it tells of. What is
muted is told when the mute ends, if it still fires then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from apps.alerts.choices import AlertState
from apps.alerts.models import Alert, AlertGang, Mute, Route
from apps.alerts.selectors import mutes_now
from apps.alerts.services.endings import gang_now
from apps.alerts.services.muting import is_muted
from apps.alerts.services.wording import (
    Member,
    Told,
    alert_message,
    resolved_message,
    update_message,
)
from apps.clusters.models import Cluster
from apps.delivery.choices import DeliveryKind
from apps.delivery.models import Channel
from apps.delivery.services import enqueue
from apps.diagnosis.models import ExplanationRecord
from apps.workloads.models import Gang, Pod
from apps.workloads.veil import Veil

UPDATE_EVERY = timedelta(minutes=15)
"""A thread gets at most one update in this time."""
MATERIAL_SHARE = 0.25
"""A quarter more or fewer gangs is worth an update, and so is any change of a small number."""
DOCUMENTS_READ = 10


@dataclass(slots=True)
class Telling:
    """What is read once for all alerts of one look."""

    cluster: Cluster
    now: datetime
    routes: Sequence[Route]
    mutes: Sequence[Mute]
    namespaces: frozenset[str] | None = None

    def veil(self, channel: Channel) -> Veil:
        """Return what hides the names that a channel may not be told; its namespaces are read when first needed."""
        if not channel.namespaces:
            return Veil()
        if self.namespaces is None:
            found = (model.objects.filter(cluster=self.cluster).order_by() for model in (Gang, Pod))
            self.namespaces = frozenset(
                name for rows in found for name in rows.values_list("namespace", flat=True).distinct()
            )
        hidden = frozenset(
            name for name in self.namespaces if not channel.may_tell(cluster=self.cluster.name, namespace=name)
        )
        return Veil({self.cluster.name: hidden})


def alerts_tell(*, cluster: Cluster, now: datetime) -> int:
    """Take on the duties to tell what changed; return how many messages that are."""
    routes = list(Route.objects.filter(is_enabled=True).select_related("channel", "escalate_to"))
    telling = Telling(cluster, now, routes, mutes_now(now=now, cluster=cluster))
    open_ones = Alert.objects.filter(cluster=cluster, state=AlertState.FIRING).select_related("rule", "cluster")
    told = sum(_tell_firing(telling, alert) for alert in open_ones.order_by("fired_at", "pk"))
    ended = Alert.objects.filter(cluster=cluster, state=AlertState.RESOLVED, resolved_at=now).exclude(told_to=[])
    return told + sum(_tell_end(telling, alert) for alert in ended.select_related("rule", "cluster"))


def _tell_firing(telling: Telling, alert: Alert) -> int:
    members = _members(alert)
    muted = is_muted(alert=alert, gangs=[row.gang for row in members], mutes=telling.mutes)
    if muted != alert.is_muted:
        alert.is_muted = muted
        Alert.objects.filter(pk=alert.pk).update(is_muted=muted)
    if muted:
        return 0
    known = tuple(alert.told_to)
    told = _tell_first(telling, alert, members) + _tell_escalation(telling, alert, members)
    return told + _tell_update(telling, alert, members, known)


def _members(alert: Alert) -> list[AlertGang]:
    """Return the gangs that an alert is about now, longest waiting first."""
    rows = AlertGang.objects.filter(alert=alert, left_at=None).select_related("gang__cluster")
    return sorted(rows, key=lambda row: (row.gang.waiting_since or row.joined_at, row.pk))


def _tell_first(telling: Telling, alert: Alert, members: Sequence[AlertGang]) -> int:
    """Tell the channels that have not been told of this cause yet."""
    channels = {route.channel_id: route.channel for route in telling.routes if _leads(route, alert, members)}
    new = [channel for key, channel in channels.items() if key not in alert.told_to]
    reached = [channel for channel in new if _send_first(telling, alert, members, channel)]
    if reached:
        alert.told_to = [*alert.told_to, *(channel.pk for channel in reached)]
        if alert.first_told_at is None:
            alert.first_told_at = telling.now
            _note(alert, telling.now)
        else:
            # The others still know what was said last, so that they get their update.
            alert.save(update_fields=["told_to"])
    return len(reached)


def _note(alert: Alert, now: datetime) -> None:
    """Remember what was said last."""
    alert.told_at, alert.told_gangs, alert.told_severity = now, alert.gang_count, alert.severity
    alert.save(update_fields=["told_to", "told_at", "first_told_at", "told_gangs", "told_severity", "updates"])


def _leads(route: Route, alert: Alert, members: Sequence[AlertGang]) -> bool:
    """Tell whether a route is about this alert. Empty lists mean all; one gang inside is enough."""
    namespaces = {row.gang.namespace for row in members}
    queues = {row.gang.queue for row in members} | {alert.queue}
    wanted: tuple[tuple[list[str], set[str]], ...] = (
        (route.rules, {alert.rule.key}),
        (route.severities, {alert.severity}),
        (route.clusters, {alert.cluster.name}),
        (route.namespaces, namespaces),
        (route.queues, queues),
    )
    return all(not values or found & set(values) for values, found in wanted)


def _send_first(
    telling: Telling, alert: Alert, members: Sequence[AlertGang], channel: Channel, *, before: str = ""
) -> bool:
    """Take on the first message for a channel; false where it may not be told of any of this."""
    told = _told(telling, members, channel)
    if channel.clusters and alert.cluster.name not in channel.clusters:
        return False
    if members and not told.members:
        return False
    message = alert_message(alert=alert, told=told, as_of=alert.cluster.diagnosed_as_of or telling.now)
    if before:
        message = msgspec.structs.replace(message, text=f"{before} {message.text}".strip())
    enqueue(channel=channel, kind=DeliveryKind.ALERT, key=alert.thread, message=message, now=telling.now)
    return True


def _told(telling: Telling, members: Sequence[AlertGang], channel: Channel) -> Told:
    """Return what a channel may be told of some gangs."""
    name = telling.cluster.name
    shown = [row.gang for row in members if channel.may_tell(cluster=name, namespace=row.gang.namespace)]
    records = ExplanationRecord.objects.filter(gang__in=[gang.pk for gang in shown[:DOCUMENTS_READ]], is_current=True)
    documents = {record.gang_id: record.data() for record in records}
    return Told(
        [Member(gang, documents.get(gang.pk)) for gang in shown], len(members) - len(shown), telling.veil(channel)
    )


def _tell_escalation(telling: Telling, alert: Alert, members: Sequence[AlertGang]) -> int:
    """Tell a second channel of what nobody has acknowledged for too long."""
    if alert.acknowledged_at or alert.first_told_at is None:
        return 0
    sent = []
    for route in telling.routes:
        channel, minutes = route.escalate_to, route.escalate_after_minutes
        if channel is None or minutes is None or channel.pk in alert.escalated_to or not _leads(route, alert, members):
            continue
        if telling.now - min(alert.first_told_at, telling.now) >= timedelta(minutes=minutes):
            before = f"Nobody has acknowledged this for {minutes} min; {route.channel.name} was told first."
            if _send_first(telling, alert, members, channel, before=before):
                sent.append(channel.pk)
    if sent:
        alert.escalated_to = [*alert.escalated_to, *sent]
        alert.told_to = [*alert.told_to, *(key for key in sent if key not in alert.told_to)]
        alert.save(update_fields=["escalated_to", "told_to"])
    return len(sent)


def _tell_update(telling: Telling, alert: Alert, members: Sequence[AlertGang], known: Sequence[int]) -> int:
    """Tell the threads that were there before this look that something material has changed, once in a while."""
    if alert.told_at is None or not _is_material(alert):
        return 0
    if alert.severity == alert.told_severity and telling.now - min(alert.told_at, telling.now) < UPDATE_EVERY:
        return 0
    left = [gang_now(row.gang) for row in _left_since(alert, alert.told_at)]
    alert.updates += 1
    key = f"{alert.thread}:update:{alert.rule_id}:{alert.updates}"
    for channel in channels_of(known):
        told = _told(telling, members, channel)
        message = update_message(alert=alert, told=told, left=left, now=telling.now)
        enqueue(
            channel=channel,
            kind=DeliveryKind.UPDATE,
            key=key,
            message=message,
            thread=alert.thread,
            now=telling.now,
        )
    _note(alert, telling.now)
    return len(known)


def _is_material(alert: Alert) -> bool:
    if alert.severity != alert.told_severity:
        return True
    return abs(alert.gang_count - alert.told_gangs) > MATERIAL_SHARE * alert.told_gangs


def _left_since(alert: Alert, since: datetime) -> Iterable[AlertGang]:
    rows = AlertGang.objects.filter(alert=alert, left_at__gte=since).select_related("gang__attempt")
    return rows.order_by("left_at", "pk")


def _tell_end(telling: Telling, alert: Alert) -> int:
    """Tell the threads that a cause ended, unless another rule still finds it."""
    same = Alert.objects.filter(thread=alert.thread, state=AlertState.FIRING)
    if same.exists():
        return 0
    for channel in channels_of(alert.told_to):
        told = Told([], 0, telling.veil(channel))
        enqueue(
            channel=channel,
            kind=DeliveryKind.RESOLVED,
            key=f"{alert.thread}:resolved",
            message=resolved_message(alert=alert, told=told),
            thread=alert.thread,
            now=telling.now,
        )
    return len(alert.told_to)


def channels_of(keys: Sequence[int]) -> Iterator[Channel]:
    """Yield channels by their keys; one that was deleted is left out."""
    yield from Channel.objects.filter(pk__in=keys).order_by("pk")
