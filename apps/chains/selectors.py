"""Workloads as a reader may see them, and the way from any object of a chain to its gangs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q, QuerySet

from apps.accounts.scope import EVERYTHING, Scope
from apps.chains.models import ChainLink, TopMoment, TopObject
from apps.chains.moments import top_then
from apps.diagnosis.selectors import gang_list_at, gang_then
from apps.workloads.models import Gang, Pod

POD, PODGROUP = "Pod", "PodGroup"


@dataclass(frozen=True, slots=True)
class Resolved:
    """What an object leads to. ``is_known`` is false where nothing of that name was seen."""

    is_known: bool
    gangs: tuple[Gang, ...] = ()
    top: TopObject | None = None


def _named(cluster: str, namespace: str, text: str) -> Q:
    """Return the filter of a list: what is empty narrows nothing, of the text each word must be in the name."""
    named = Q(cluster__name=cluster) if cluster else Q()
    if namespace:
        named &= Q(namespace=namespace)
    for word in text.replace("\x00", "").split():
        named &= Q(name__icontains=word)
    return named


def top_list(*, scope: Scope, cluster: str = "", namespace: str = "", text: str = "") -> QuerySet[TopObject]:
    """Return the workloads that the reader may see in clusters that are read."""
    rows = TopObject.objects.select_related("cluster").filter(cluster__removed_at=None).filter(scope.namespace_filter())
    return rows.filter(_named(cluster, namespace, text))


def top_list_at(
    *, scope: Scope, at: datetime, cluster: str = "", namespace: str = "", text: str = ""
) -> QuerySet[TopMoment]:
    """Return how the visible workloads stood at a moment; ``top_then`` makes a workload of each."""
    held = Q(until=None) | Q(until__gt=at)
    rows = TopMoment.objects.select_related("cluster").filter(held, scope.namespace_filter(), since__lte=at)
    return rows.filter(_named(cluster, namespace, text))


def moment_list(*, top: TopObject) -> QuerySet[TopMoment]:
    """Return how a workload stood over time, newest first."""
    return TopMoment.objects.filter(cluster=top.cluster, uid=top.uid).order_by("-since", "-pk")


def top_get(*, scope: Scope, cluster: str, kind: str, namespace: str, name: str) -> TopObject:
    """Return one workload; ``TopObject.DoesNotExist`` where it is not there or not visible."""
    if "\x00" in f"{cluster}{kind}{namespace}{name}":
        raise TopObject.DoesNotExist
    rows = top_list(scope=scope, cluster=cluster, namespace=namespace).filter(kind=kind, name=name)
    return rows.order_by("-created_at", "-pk")[:1].get()


def top_by_id(*, scope: Scope, public_id: str) -> TopObject:
    """Return one workload by the id of REST; ``TopObject.DoesNotExist`` where it is not there or not visible."""
    cluster, _, uid = public_id.partition("~")
    if "\x00" in public_id:
        raise TopObject.DoesNotExist
    return top_list(scope=scope, cluster=cluster).get(uid=uid)


def top_get_at(*, scope: Scope, at: datetime, cluster: str, kind: str, namespace: str, name: str) -> TopObject:
    """Return one workload as it stood at a moment; ``TopObject.DoesNotExist`` where that is not kept or not visible."""
    if "\x00" in f"{cluster}{kind}{namespace}{name}":
        raise TopObject.DoesNotExist
    rows = top_list_at(scope=scope, at=at, cluster=cluster, namespace=namespace).filter(kind=kind, name=name)
    return _then(rows)


def top_by_id_at(*, scope: Scope, at: datetime, public_id: str) -> TopObject:
    """Return one workload as it stood at a moment, by the id of REST."""
    cluster, _, uid = public_id.partition("~")
    if "\x00" in public_id:
        raise TopObject.DoesNotExist
    return _then(top_list_at(scope=scope, at=at, cluster=cluster).filter(uid=uid))


def _then(rows: QuerySet[TopMoment]) -> TopObject:
    found = rows.order_by("-since", "-pk").first()
    if found is None:
        raise TopObject.DoesNotExist
    return top_then(found)


def gangs_of_top(*, top: TopObject, at: datetime | None = None) -> dict[str, Gang]:
    """Return a workload's gangs by name, and under its own name the explanation of what never became one.

    Of a moment in the past the gangs that had a verdict then, with it.
    """
    names = {name for gang in top.gangs for name in gang["podgroups"]}
    if at is None:
        found = Gang.objects.select_related("cluster").filter(gone_at=None)
    else:
        found = gang_list_at(scope=EVERYTHING, at=at)
    of_top = found.filter(cluster=top.cluster, namespace=top.namespace)
    rows = of_top.filter(Q(kind=PODGROUP, name__in=names) | Q(kind=top.kind, name=top.name))
    gangs = rows if at is None else (gang_then(row, at=at) for row in rows)
    return {row.name if row.kind == PODGROUP else f"{row.kind}/{row.name}": row for row in gangs}


def resolve(*, scope: Scope, cluster: str, kind: str, namespace: str, name: str) -> Resolved:
    """Return the gangs that an object leads to; nothing of what the reader may not see."""
    if "\x00" in f"{cluster}{kind}{namespace}{name}" or not scope.allows(cluster=cluster, namespace=namespace):
        return Resolved(is_known=False)
    present = Gang.objects.select_related("cluster").filter(cluster__name=cluster, namespace=namespace, gone_at=None)
    itself = tuple(present.filter(kind=kind, name=name))
    if kind == POD:
        return _of_pod(cluster, namespace, name, present)
    links = list(ChainLink.objects.filter(cluster__name=cluster, kind=kind, namespace=namespace, name=name))
    names = {gang for link in links for gang in link.gangs}
    found = tuple(present.filter(kind=PODGROUP, name__in=names).order_by("name")) if names else ()
    top = _top_of(cluster, namespace, kind, name, names)
    return Resolved(bool(itself or links or top), itself or found or _own(present, top), top)


def _of_pod(cluster: str, namespace: str, name: str, present: QuerySet[Gang]) -> Resolved:
    pod = Pod.objects.filter(cluster__name=cluster, namespace=namespace, name=name).first()
    if pod is None:
        return Resolved(is_known=False)
    gangs = tuple(present.filter(pods=pod))
    top = _top_of(cluster, namespace, PODGROUP, "", {gang.name for gang in gangs})
    return Resolved(is_known=True, gangs=gangs, top=top)


def _top_of(cluster: str, namespace: str, kind: str, name: str, gangs: set[str]) -> TopObject | None:
    """Return the workload itself, or the one that one of the gangs belongs to."""
    rows = TopObject.objects.select_related("cluster").filter(cluster__name=cluster, namespace=namespace)
    wanted = gangs or ({name} if kind == PODGROUP else set())
    for row in rows:
        if (row.kind, row.name) == (kind, name):
            return row
        if wanted & {group for gang in row.gangs for group in gang["podgroups"]}:
            return row
    return None


def _own(present: QuerySet[Gang], top: TopObject | None) -> tuple[Gang, ...]:
    """Return the explanation of a workload that has no gang yet, under its own name."""
    return tuple(present.filter(kind=top.kind, name=top.name)) if top is not None else ()
