"""Reads of alerts, rules and mutes, always inside what the reader may see.

Who sees single namespaces gets the alerts that are about gangs of theirs, without the names of others; what is said of
whole clusters and queues is for those who see all of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet

from apps.accounts.scope import Scope
from apps.alerts.choices import AlertState
from apps.alerts.models import Alert, AlertClock, AlertGang, AlertRule, Mute, Route
from apps.clusters.models import Cluster
from apps.workloads.models import Gang

LATE = timedelta(minutes=5)
"""Ten looks."""


def alert_list(*, scope: Scope, state: str = "", cluster: str = "", rule: str = "") -> QuerySet[Alert]:
    """Return the alerts that the reader may see; pending ones only where they are asked for."""
    rows = Alert.objects.filter(_visible(scope)).select_related("rule", "cluster")
    rows = rows.filter(state=state) if state else rows.exclude(state=AlertState.PENDING)
    if cluster:
        rows = rows.filter(cluster__name=cluster)
    return rows.filter(rule__key=rule) if rule else rows


def _visible(scope: Scope) -> Q:
    if scope.sees_all:
        return Q()
    mine = scope.namespace_filter(cluster_field="gang__cluster__name", namespace_field="gang__namespace")
    return Q(Exists(AlertGang.objects.filter(mine, alert=OuterRef("pk"))))


def alert_get(*, scope: Scope, alert_id: int) -> Alert:
    """Return one alert; ``Alert.DoesNotExist`` where it is not there or not visible."""
    return Alert.objects.filter(_visible(scope)).select_related("rule", "cluster").get(pk=alert_id)


def alert_gangs(*, scope: Scope, alert: Alert) -> QuerySet[AlertGang]:
    """Return the gangs of an alert that the reader may see, those that it is still about first."""
    mine = scope.namespace_filter(cluster_field="gang__cluster__name", namespace_field="gang__namespace")
    rows = AlertGang.objects.filter(mine, alert=alert).select_related("gang__cluster")
    return rows.order_by("-left_at", "joined_at", "pk")


def blind_since_by_cluster() -> dict[int, datetime]:
    """Return since when the rules that rest on verdicts keep still, by the cluster's key; one query."""
    clocks = AlertClock.objects.exclude(blind_since=None).filter(cluster__is_read=True)
    return {key: since for key, since in clocks.values_list("cluster_id", "blind_since") if since is not None}


def late_list(*, scope: Scope, now: datetime, cluster: str = "") -> list[AlertClock]:
    """Return the clusters at which no look has succeeded for too long: what they would alert about is not known."""
    clocks = AlertClock.objects.filter(scope.cluster_filter(cluster_field="cluster__name"), cluster__is_read=True)
    late = clocks.filter(Q(evaluated_at=None, started_at__lt=now - LATE) | Q(evaluated_at__lt=now - LATE))
    late = late.select_related("cluster").order_by("cluster__name")
    return list(late.filter(cluster__name=cluster) if cluster else late)


def rule_list() -> QuerySet[AlertRule]:
    """Return the rules, those of the list first, by number."""
    return AlertRule.objects.select_related("changed_by")


def route_list() -> QuerySet[Route]:
    """Return the routes by name."""
    return Route.objects.select_related("channel", "escalate_to")


def mutes_now(*, now: datetime, cluster: Cluster | None = None) -> list[Mute]:
    """Return the mutes that hold now, of one cluster and of all."""
    rows = Mute.objects.filter(ended_at=None, ends_at__gt=now, created_at__lte=now).select_related("cluster")
    if cluster is not None:
        rows = rows.filter(Q(cluster=None) | Q(cluster=cluster))
    return list(rows.order_by("ends_at", "pk"))


def alerts_of_gangs(*, gangs: Iterable[Gang]) -> dict[int, list[Alert]]:
    """Return what fires about some gangs now, by the gang's key; one query."""
    rows: Any = AlertGang.objects.filter(
        gang__in=[gang.pk for gang in gangs], left_at=None, alert__state=AlertState.FIRING
    )
    found: dict[int, list[Alert]] = {}
    for row in rows.select_related("alert__rule").order_by("alert__fired_at", "pk"):
        found.setdefault(row.gang_id, []).append(row.alert)
    return found
