"""Says what ended an alert: where its gangs are now, and what changed in the cluster since it fired.

Only what is kept is said: a gang that started and when, one that is gone, one that waits for something else; holders
that let go, queues that may use more, nodes that came back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from django.db.models import Q

from apps.alerts.models import Alert, AlertGang, Observation
from apps.alerts.rules import RULES
from apps.alerts.rules.facts import Facts, Seen, Topic, queue_of
from apps.diagnosis.models import ExplanationRecord
from apps.inventory.models import StateChange
from apps.workloads.models import Gang
from gangdash.engine.verdict import Verdict

NAMED = 3
NODE_READY = "ready"


def ending_of(*, alert: Alert, facts: Facts) -> str:
    """Return what ended an alert, in a sentence or two."""
    gangs = [
        row.gang
        for row in AlertGang.objects.filter(alert=alert).select_related("gang__attempt").order_by("joined_at", "pk")
    ]
    told = [gang_now(gang) for gang in gangs[:NAMED]]
    if len(gangs) > NAMED:
        told.append(f"and {len(gangs) - NAMED} more")
    changes = list(_changes(alert, gangs, facts))
    rule = RULES.get(alert.rule.key)
    what = "; ".join(told) if told else rule.ending if rule else "It is not found any more"
    return f"{what}. {'Since it fired: ' + '; '.join(changes[:NAMED]) + '.' if changes else ''}".strip()


def gang_now(gang: Gang) -> str:
    """Say where a gang is now."""
    path = f"{gang.namespace}/{gang.name}"
    if gang.gone_at is not None:
        return f"{path} is gone since {_clock(gang.gone_at)}"
    if gang.verdict in {Verdict.STARTING, Verdict.HEALTHY}:
        bound = getattr(getattr(gang, "attempt", None), "bound_at", None)
        return f"{path} started" + (f" at {_clock(bound)}" if bound else "")
    return f"{path} is now {gang.verdict} {gang.code}"


def _clock(moment: datetime) -> str:
    return f"{moment:%H:%M:%S} UTC"


def _changes(alert: Alert, gangs: Sequence[Gang], facts: Facts) -> Iterator[str]:
    """Yield what changed in the cluster that can have helped these gangs."""
    if alert.fired_at is None:
        return
    yield from _holders(alert, gangs)
    yield from _queues(alert, gangs, facts)
    nodes = StateChange.objects.filter(cluster=alert.cluster_id, kind="Node", at__gte=alert.fired_at, state=NODE_READY)
    names = list(nodes.exclude(was="").order_by("-at").values_list("subject", flat=True)[: NAMED + 1])
    if names:
        more = " and more" if len(names) > NAMED else ""
        yield f"{', '.join(sorted(set(names[:NAMED])))}{more} came back"


def _holders(alert: Alert, gangs: Sequence[Gang]) -> Iterator[str]:
    """Yield who held what these gangs needed and does not any more."""
    record = _record(alert, gangs)
    paths = [] if record is None else [str(entry["gang"]) for entry in record.data().get("holders", [])]
    wanted = Q(pk__in=[])
    for path in paths[:20]:
        namespace, _, name = path.partition("/")
        wanted |= Q(namespace=namespace, name=name)
    for gang in Gang.objects.filter(wanted, cluster=alert.cluster_id).order_by("namespace", "name", "-pk"):
        if gang.gone_at is not None and alert.fired_at is not None and gang.gone_at >= alert.fired_at:
            yield f"{gang.namespace}/{gang.name} let go of its GPUs"


def _record(alert: Alert, gangs: Sequence[Gang]) -> ExplanationRecord | None:
    """Return what was said of the first gang while the alert fired."""
    if not gangs:
        return None
    said = ExplanationRecord.objects.filter(gang=gangs[0], verdict=alert.verdict, code=alert.code)
    return said.order_by("-snapshot__as_of", "-pk").first()


def _queues(alert: Alert, gangs: Sequence[Gang], facts: Facts) -> Iterator[str]:
    """Yield which of their queues may use more than when it fired."""
    names = {gang.queue for gang in gangs} | {alert.queue}
    before = Observation.objects.filter(
        cluster=alert.cluster_id, topic=Topic.QUEUE, subject__in=sorted(names - {""}), closed_at__gte=alert.fired_at
    )
    for row in before.order_by("subject", "opened_at"):
        now = facts.about(Topic.QUEUE).get(row.subject)
        if now is not None:
            was = queue_of(Seen(row.topic, row.subject, row.value, row.opened_at, row.closed_at))
            yield from _raised(row.subject, was.limit, queue_of(now).limit, "limit")
            yield from _raised(row.subject, was.quota, queue_of(now).quota, "quota")


def _raised(queue: str, was: float | None, now: float | None, what: str) -> Iterator[str]:
    if was is not None and now is not None and was >= 0 and (now < 0 or now > was):
        yield f"the {what} of queue {queue} went from {was:g} to {'unlimited' if now < 0 else f'{now:g}'}"
