"""What would changes do to every gang of a cluster: two whole cycles on an analysed moment, told to one reader.

Nothing is stored and nothing is changed anywhere; the answer names the digest of the moment it was run on. A reader
of single namespaces changes gangs of these only, and reads no name and no total of others.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from django.core.cache import cache

from apps.accounts.scope import Scope
from apps.clusters.models import Cluster
from apps.diagnosis.choices import AnalysisOutcome
from apps.diagnosis.models import Snapshot
from apps.diagnosis.services.downloads import moment_reading
from apps.errors import ApplicationError
from apps.workloads.veil import HIDDEN
from gangdash import __version__
from gangdash.comparison import what_if
from gangdash.engine.changes import Change, ChangeError, change_text
from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.verdict import FixKind
from gangdash.snapshot.archive import snapshot_of

CHANGES_MAX = 20
NODES_MAX = 2_000
PODS_MAX = 20_000
"""Larger clusters take minutes for two cycles: there the command line answers, from the snapshot of the moment."""
ADDED_MAX = 2_000
"""Nodes or pods that one change may add."""
AMOUNT_MAX = 1e15
KEPT_SECONDS = 600
_LISTS = ("starts", "moves", "delays", "sets_back", "evicts", "one_of_several")


@dataclass(frozen=True, slots=True)
class Told:
    """The difference for one reader; ``is_newest`` says whether the moment is still the newest one analysed."""

    document: dict[str, Any]
    snapshot: Snapshot
    is_newest: bool


def whatif_run(
    *, cluster: Cluster, scope: Scope, changes: Sequence[Change], base: str = "", expected: str = ""
) -> Told:
    """Return what the changes do on the moment with the digest ``base``, on the newest one without.

    ``expected`` is the digest that the newest moment must have, so that an answer is not taken for one about a cluster
    that has moved on.
    """
    _check(cluster, scope, changes)
    newest = _analysed(cluster).first()
    if newest is None:
        raise ApplicationError("not_diagnosed", "This cluster has not been analysed yet")
    if expected and newest.digest != expected:
        raise ApplicationError("base_moved", f"The newest analysis is {newest.digest}, another one than expected")
    snapshot = newest if base in {"", newest.digest} else _analysed(cluster).filter(digest=base).first()
    if snapshot is None:
        raise ApplicationError("dump_expired", "The objects of this moment are not kept any more")
    document = _answer(cluster, snapshot, scope, changes)
    return Told(_veiled(document, cluster, scope), snapshot, snapshot.digest == newest.digest)


def _analysed(cluster: Cluster) -> Any:
    """Return the answered moments whose objects are kept, the newest first."""
    done = Snapshot.objects.filter(cluster=cluster, outcome=AnalysisOutcome.DONE, reading__isnull=False)
    return done.select_related("reading").order_by("-as_of", "-pk")


# What may be asked


def _check(cluster: Cluster, scope: Scope, changes: Sequence[Change]) -> None:
    if not 1 <= len(changes) <= CHANGES_MAX:
        raise ApplicationError("change_not_valid", f"Name 1 to {CHANGES_MAX} changes")
    for change in changes:
        _check_amounts(change)
        namespace = namespace_of(change)
        if namespace and not scope.allows(cluster=cluster.name, namespace=namespace):
            # The same words as for a gang that does not exist.
            detail = f"{change.kind.value}: no {change.object!r} in the snapshot"
            raise ApplicationError("change_not_valid", detail)


def _check_amounts(change: Change) -> None:
    """Refuse numbers that are none, and sizes that would only cost time."""
    for key, text in change.values.items():
        try:
            value = float(text)
        except ValueError:
            continue
        most = ADDED_MAX if key in {"count", "pods"} else AMOUNT_MAX
        if not math.isfinite(value) or abs(value) > most:
            raise ApplicationError("change_not_valid", f"{change.kind.value}: {key}={text} is out of range")


def namespace_of(change: Change) -> str:
    """Return the namespace of the object that a change touches; empty for nodes, queues and the like."""
    kind, _, rest = change.object.partition("/")
    parts = (rest if kind[:1].isupper() else change.object).split("/")
    return parts[0] if len(parts) > 1 else ""


# The answer


def _answer(cluster: Cluster, snapshot: Snapshot, scope: Scope, changes: Sequence[Change]) -> dict[str, Any]:
    """Return the difference, kept for a while as reloading a page asks for the same again."""
    seen = (
        "all" if scope.sees_all else ",".join(sorted(name for owner, name in scope.namespaces if owner == cluster.name))
    )
    asked = "\n".join((__version__, str(snapshot.pk), snapshot.digest, seen, *map(change_text, changes)))
    key = f"whatif:{hashlib.sha256(asked.encode()).hexdigest()}"
    found: dict[str, Any] | None = cache.get(key)
    if found is None:
        found = _run(cluster, snapshot, scope, changes)
        cache.set(key, found, KEPT_SECONDS)
    return found


def _run(cluster: Cluster, snapshot: Snapshot, scope: Scope, changes: Sequence[Change]) -> dict[str, Any]:
    objects = _objects(snapshot)
    _check_targets(objects, changes)
    try:
        answer = what_if(
            objects, changes, counts=lambda namespace: scope.allows(cluster=cluster.name, namespace=namespace)
        )
    except ChangeError as error:
        raise ApplicationError("change_not_valid", str(error)) from error
    document: dict[str, Any] = msgspec.to_builtins(answer)
    return document


def _objects(snapshot: Snapshot) -> ClusterSnapshot:
    objects = snapshot_of(moment_reading(snapshot=snapshot))
    if len(objects.nodes) > NODES_MAX or len(objects.pods) > PODS_MAX:
        raise ApplicationError(
            "cluster_too_large",
            f"A re-run of more than {NODES_MAX} nodes or {PODS_MAX} pods takes too long here: download the snapshot of "
            "the moment and use manage.py whatif",
        )
    return objects


def _check_targets(objects: ClusterSnapshot, changes: Sequence[Change]) -> None:
    """Refuse to stop a gang that only shares its name with one of another namespace: pods join by name alone."""
    keys = {group.key for group in objects.podgroups}
    for change in changes:
        key = change.object.removeprefix("PodGroup/")
        if change.kind is FixKind.EVICT_GANG and key not in keys:
            raise ApplicationError("change_not_valid", f"{change.kind.value}: no {change.object!r} in the snapshot")


def _veiled(document: dict[str, Any], cluster: Cluster, scope: Scope) -> dict[str, Any]:
    """Return the document with gangs of other namespaces counted and not named."""

    def told(name: str) -> str:
        return name if scope.allows(cluster=cluster.name, namespace=name.partition("/")[0]) else HIDDEN

    return document | {key: [told(name) for name in document[key]] for key in _LISTS}
