"""Workloads as a reader may see them, and the way from any object of a chain to its gangs."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Q, QuerySet

from apps.accounts.scope import Scope
from apps.chains.models import ChainLink, TopObject
from apps.workloads.models import Gang, Pod

POD, PODGROUP = "Pod", "PodGroup"


@dataclass(frozen=True, slots=True)
class Resolved:
    """What an object leads to. ``is_known`` is false where nothing of that name was seen."""

    is_known: bool
    gangs: tuple[Gang, ...] = ()
    top: TopObject | None = None


def top_list(*, scope: Scope, cluster: str = "", namespace: str = "", text: str = "") -> QuerySet[TopObject]:
    """Return the workloads that the reader may see in clusters that are read."""
    rows = TopObject.objects.select_related("cluster").filter(cluster__removed_at=None).filter(scope.namespace_filter())
    if cluster:
        rows = rows.filter(cluster__name=cluster)
    if namespace:
        rows = rows.filter(namespace=namespace)
    for word in text.replace("\x00", "").split():
        rows = rows.filter(name__icontains=word)
    return rows


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


def gangs_of_top(*, top: TopObject) -> dict[str, Gang]:
    """Return a workload's gangs by name, and under its own name the explanation of what never became one."""
    names = {name for gang in top.gangs for name in gang["podgroups"]}
    present = Gang.objects.select_related("cluster").filter(cluster=top.cluster, namespace=top.namespace, gone_at=None)
    rows = present.filter(Q(kind=PODGROUP, name__in=names) | Q(kind=top.kind, name=top.name))
    return {row.name if row.kind == PODGROUP else f"{row.kind}/{row.name}": row for row in rows}


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
