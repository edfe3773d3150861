"""Mutes: who made them, why, until when. A mute ends by itself; nobody has to remember it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction

from apps.accounts.models import User
from apps.accounts.services import audit_record
from apps.alerts.choices import MuteKind
from apps.alerts.models import Alert, Mute
from apps.clusters.models import Cluster
from apps.errors import ApplicationError
from apps.workloads.models import Gang

MUTE_LONGEST = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class MuteInput:
    """What to mute. ``value`` is empty for a cluster; without a cluster it holds in all."""

    kind: str
    value: str
    cluster: Cluster | None
    reason: str
    ends_at: datetime


def is_muted(*, alert: Alert, gangs: Sequence[Gang], mutes: Sequence[Mute]) -> bool:
    """Tell whether nothing is to be told of an alert: it, its cluster, or all that it is about is muted."""
    left = list(gangs)
    for mute in mutes:
        if mute.kind == MuteKind.CLUSTER or (mute.kind == MuteKind.SIGNATURE and mute.value == alert.signature):
            return True
        if mute.kind == MuteKind.QUEUE and not gangs and alert.queue and mute.value == alert.queue:
            return True
        left = [gang for gang in left if not _covers(mute, gang)]
    return bool(gangs) and not left


def _covers(mute: Mute, gang: Gang) -> bool:
    if mute.kind == MuteKind.GANG:
        return mute.value == f"{gang.namespace}/{gang.name}"
    return mute.kind == MuteKind.QUEUE and mute.value == gang.queue


def mute_create(*, values: MuteInput, actor: User, now: datetime, address: str | None = None) -> Mute:
    """Mute something for a limited time."""
    _check(values, now)
    with transaction.atomic():
        mute = Mute.objects.create(
            kind=values.kind,
            cluster=values.cluster,
            value=values.value,
            reason=values.reason.strip(),
            ends_at=values.ends_at,
            created_at=now,
            created_by=actor,
            created_name=actor.username,
        )
        audit_record(action="mute.create", actor=actor, target=_target(mute), details=_told(mute), address=address)
    return mute


def _check(values: MuteInput, now: datetime) -> None:
    if values.kind not in MuteKind.values:
        raise ApplicationError("mute_not_valid", f"There is no mute of kind {values.kind!r}", field="kind")
    if not values.reason.strip() or len(values.reason) > 500:
        raise ApplicationError("mute_not_valid", "Give a reason of 1 to 500 characters", field="reason")
    if not now < values.ends_at <= now + MUTE_LONGEST:
        raise ApplicationError("mute_not_valid", f"A mute ends within {MUTE_LONGEST.days} days", field="ends_at")
    if (values.kind == MuteKind.CLUSTER) != (not values.value):
        raise ApplicationError("mute_not_valid", "Say what to mute; a cluster is named apart", field="value")
    if values.kind == MuteKind.CLUSTER and values.cluster is None:
        raise ApplicationError("mute_not_valid", "Say which cluster to mute", field="cluster")


def mute_end(*, mute: Mute, actor: User, now: datetime, address: str | None = None) -> None:
    """End a mute before its time; ending it again changes nothing."""
    with transaction.atomic():
        ended = Mute.objects.filter(pk=mute.pk, ended_at=None, ends_at__gt=now)
        if ended.update(ended_at=now, ended_name=actor.username):
            audit_record(action="mute.end", actor=actor, target=_target(mute), address=address)


def _target(mute: Mute) -> str:
    return f"{mute.cluster.name if mute.cluster else 'all clusters'}: {mute.kind} {mute.value}".strip()


def _told(mute: Mute) -> dict[str, object]:
    return {"reason": mute.reason, "ends_at": mute.ends_at.isoformat()}
