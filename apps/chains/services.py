"""Brings the rows of one cluster's workloads to what a reading says: writes what changed, removes what is gone.

A kind that was not read is left alone: what is known of its objects stays.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, TypeVar

from django.db import transaction

from apps.chains.models import ChainLink, RecordedReading, TopObject
from apps.chains.moments import moments_record
from apps.clusters.models import Cluster
from gangdash.engine.chain import Chain, remarks_of, standing_of
from gangdash.engine.chain.ladder import gangs_of, ladder_of, leads
from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.model.observed import ObservedObject

BATCH = 500
_NOT_FACTS = frozenset({"id", "cluster", "as_of", "fingerprint"})
_LEFT_ALONE = "not served"

Row = TypeVar("Row", TopObject, ChainLink)


def chains_record(
    *, cluster: Cluster, snapshot: ClusterSnapshot, as_of: datetime, reading_id: int | None = None, **_more: Any
) -> int:
    """Write the workloads of a reading; return how many rows were written or removed. ``_more`` is the signal's own.

    With a reading that was written already only time can have run out, which matters to those that stand at a stage.
    """
    chain = Chain(snapshot)
    if reading_id is not None and RecordedReading.objects.filter(cluster=cluster, reading_id=reading_id).exists():
        return _sync_standing(cluster, chain, as_of)
    tops = [_top(chain, top, as_of) for top in chain.tops()]
    links = [_link(key, gangs) for key, gangs in leads(chain).items()]
    keep = _unread(snapshot).__contains__
    with transaction.atomic():
        written = _sync_tops(cluster, tops, as_of, keep=keep)
        written += _written(cluster, ChainLink, ("kind", "namespace", "name", "uid"), links, keep=keep)
        if reading_id is not None:
            RecordedReading.objects.update_or_create(cluster=cluster, defaults={"reading_id": reading_id})
    return written


def _sync_standing(cluster: Cluster, chain: Chain, as_of: datetime) -> int:
    """Write those that stand at a stage again; the others, and those that were not read, stay as they are."""
    standing = set(TopObject.objects.filter(cluster=cluster).exclude(stage="").values_list("uid", flat=True))
    if not standing:
        return 0
    tops = [_top(chain, top, as_of) for top in chain.tops() if top.meta.uid in standing]
    with transaction.atomic():
        return _sync_tops(cluster, tops, as_of, keep=lambda _: True)


def _sync_tops(cluster: Cluster, tops: list[TopObject], as_of: datetime, *, keep: Callable[[str], bool]) -> int:
    """Write the workloads and, with them, from when on each stood so."""
    changed, gone = _sync(cluster, TopObject, ("uid",), tops, keep=keep)
    moments_record(cluster=cluster, changed=changed, gone=(str(uid) for (uid,) in gone), as_of=as_of)
    return len(changed) + len(gone)


def _written(cluster: Cluster, model: type[Row], key: tuple[str, ...], found: list[Row], *, keep: Callable[[str], bool]
             ) -> int:  # fmt: skip
    changed, gone = _sync(cluster, model, key, found, keep=keep)
    return len(changed) + len(gone)


def _unread(snapshot: ClusterSnapshot) -> frozenset[str]:
    """Return the kinds that exist and could not be read this time."""
    return frozenset(gap.kind for gap in snapshot.not_read if gap.reason != _LEFT_ALONE)


def _top(chain: Chain, top: ObservedObject, as_of: datetime) -> TopObject:
    row = TopObject(
        uid=top.meta.uid,
        kind=top.kind,
        namespace=top.meta.namespace,
        name=top.meta.name,
        api_version=top.api_version[:128],
        created_at=_moment(top.meta.created),
        components=[_plain(asdict(rung)) for rung in ladder_of(chain, top)],
        gangs=[_plain(asdict(gang)) for gang in gangs_of(chain, top)],
        remarks=[
            {"stage": r.stage, "proof": r.proof, "field": r.field, "problem": r.problem[:500]}
            for r in remarks_of(chain, top)
        ],
        as_of=as_of,
    )
    found = standing_of(chain, top)
    if found is not None:
        row.stage, row.controller, row.proof = found.stage, found.controller[:64], found.proof[:600]
        row.field, row.problem = found.field[:128], found.problem[:500]
        row.since, row.is_overdue = _moment(found.since), found.overdue
    return _stamped(row)


def _plain(value: Any) -> Any:
    """Return what JSON gives back, so that a stored row equals a new one."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple | list) else value


def _link(key: tuple[str, str, str, str], gangs: Iterable[str]) -> ChainLink:
    kind, namespace, name, uid = key
    row = ChainLink(kind=kind[:64], namespace=namespace, name=name[:253], uid=uid[:64], gangs=sorted(gangs))
    return _stamped(row)


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def _stamped(row: Row) -> Row:
    fields = row._meta.concrete_fields  # noqa: SLF001 - Django's public API
    facts = [getattr(row, field.attname) for field in fields if field.name not in _NOT_FACTS]
    row.fingerprint = hashlib.blake2b(repr(facts).encode(), digest_size=16).hexdigest()
    return row


def _sync(
    cluster: Cluster,
    model: type[Row],
    key: tuple[str, ...],
    found: list[Row],
    *,
    keep: Callable[[str], bool],
) -> tuple[list[Row], list[tuple[Hashable, ...]]]:
    """Make the cluster's rows of a model equal to ``found``; rows that ``keep`` names by their kind stay.

    Returns the rows that changed and the keys of those that went.
    """
    stored: dict[tuple[Hashable, ...], tuple[int, str, str]] = {}
    for known in model.objects.filter(cluster=cluster).values(*{"pk", "fingerprint", "kind", *key}).iterator():
        stored[tuple(known[name] for name in key)] = (known["pk"], known["fingerprint"], known["kind"])
    current = {tuple(getattr(row, name) for name in key): row for row in found}
    changed = [row for identity, row in current.items() if stored.get(identity, (0, "", ""))[1] != row.fingerprint]
    for row in changed:
        row.cluster = cluster
    columns = [field.name for field in model._meta.concrete_fields]  # noqa: SLF001 - Django's public API
    facts = [name for name in columns if name not in {"id", "cluster", *key}]
    model.objects.bulk_create(
        changed, BATCH, update_conflicts=True, unique_fields=["cluster", *key], update_fields=facts
    )
    gone = {identity: pk for identity, (pk, _, kind) in stored.items() if identity not in current and not keep(kind)}
    keys = list(gone.values())
    for start in range(0, len(keys), BATCH):
        model.objects.filter(pk__in=keys[start : start + BATCH]).delete()
    return changed, list(gone)
