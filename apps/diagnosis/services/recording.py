"""Writes what one analysis says: explanations, timelines, the verdict columns of gangs, queues' shares.

One transaction, so that no page ever shows half an answer. Run twice for the same moment it changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import partial

import msgspec
from django.db import transaction

from apps.clusters.models import Cluster
from apps.diagnosis.choices import AnalysisOutcome
from apps.diagnosis.models import ExplanationRecord, ReasonTimeline, Snapshot
from apps.diagnosis.services.history import placeable_since
from apps.diagnosis.signals import diagnosis_done
from apps.inventory.models import Queue
from apps.workloads.choices import PLACED_VERDICTS, GangState
from apps.workloads.models import Gang
from gangdash.documents import Cycle, Diagnosis, ExplanationDocument
from gangdash.documents.times import parse_stamp
from gangdash.engine.verdict import ReasonCode, Verdict

BATCH = 500
PODGROUP = "PodGroup"
VERDICT_COLUMNS = (
    "owner", "shard", "state", "verdict", "code", "who", "certainty", "sentence", "subject", "stage", "waiting_since",
    "placeable_since",
)  # fmt: skip
_NOTHING_TO_TELL = frozenset({ReasonCode.RUNNING, ReasonCode.COMPLETED})
_encode = msgspec.json.Encoder().encode


@transaction.atomic
def results_record(*, snapshot: Snapshot, diagnosis: Diagnosis, now: datetime) -> AnalysisOutcome:
    """Write the results unless a newer moment was written first; return how it ended."""
    held = Snapshot.objects.select_for_update().get(pk=snapshot.pk)
    if held.outcome != AnalysisOutcome.RUNNING:
        return AnalysisOutcome(held.outcome)
    newer = Snapshot.objects.filter(
        cluster=snapshot.cluster_id, as_of__gt=snapshot.as_of, outcome=AnalysisOutcome.DONE
    ).exists()
    gangs = [] if newer else _write(snapshot, diagnosis)
    held.outcome = AnalysisOutcome.SUPERSEDED if newer else AnalysisOutcome.DONE
    held.ended_at, held.digest = now, diagnosis.digest
    held.gangs, held.waiting = len(gangs), sum(gang.is_waiting for gang in gangs)
    held.not_read = msgspec.to_builtins(diagnosis.not_read)
    held.not_modelled = msgspec.to_builtins(diagnosis.not_modelled)
    held.oddities = msgspec.to_builtins(diagnosis.oddities)
    held.save()
    if not newer:
        transaction.on_commit(partial(_tell, held), robust=True)
    return AnalysisOutcome(held.outcome)


def _tell(snapshot: Snapshot) -> None:
    """Let others hang on to the answer, each on its own: one that fails is logged and costs the answer nothing."""
    diagnosis_done.send_robust(sender=Snapshot, cluster=snapshot.cluster, snapshot=snapshot)


def _write(snapshot: Snapshot, diagnosis: Diagnosis) -> list[Gang]:
    documents = {document.gang.uid: document for document in diagnosis.explanations if document.gang.uid}
    gangs = _gangs_write(snapshot, documents)
    opened = _timelines_write(snapshot, gangs, documents)
    _explanations_write(snapshot, gangs, documents, opened)
    _others_end(snapshot, documents)
    _queues_write(snapshot, diagnosis.cycle)
    Cluster.objects.filter(pk=snapshot.cluster_id).update(
        diagnosed_as_of=snapshot.as_of, diagnosed_digest=diagnosis.digest, engine=diagnosis.engine
    )
    return gangs


def _gangs_write(snapshot: Snapshot, documents: dict[str, ExplanationDocument]) -> list[Gang]:
    """Put the verdicts into the gangs' columns; a workload without a PodGroup gets its row here."""
    known = {gang.uid: gang for gang in Gang.objects.filter(cluster=snapshot.cluster_id, uid__in=list(documents))}
    gangs = [known.get(uid) or _new_gang(snapshot, document) for uid, document in documents.items()]
    changed = [gang for gang in gangs if _applied(gang, documents[gang.uid], snapshot)]
    Gang.objects.bulk_create(
        changed, BATCH, update_conflicts=True, unique_fields=["cluster", "uid"], update_fields=VERDICT_COLUMNS
    )
    for part in _batches([gang.pk for gang in gangs if gang.pk]):
        Gang.objects.filter(pk__in=part).update(diagnosed_as_of=snapshot.as_of)
    back = [gang.uid for gang in gangs if gang.gone_at and gang.kind != PODGROUP]
    Gang.objects.filter(cluster=snapshot.cluster_id, uid__in=back).update(gone_at=None)
    stored = dict(Gang.objects.filter(cluster=snapshot.cluster_id).values_list("uid", "pk"))
    for gang in gangs:
        gang.pk = stored[gang.uid]
    return gangs


def _applied(gang: Gang, document: ExplanationDocument, snapshot: Snapshot) -> bool:
    """Apply a document to a gang and return whether more than its time is to be written."""
    before = [getattr(gang, name) for name in VERDICT_COLUMNS]
    verdict_apply(gang=gang, document=document, as_of=snapshot.as_of)
    gang.diagnosed_as_of = snapshot.as_of
    return not gang.pk or before != [getattr(gang, name) for name in VERDICT_COLUMNS]


def _new_gang(snapshot: Snapshot, document: ExplanationDocument) -> Gang:
    return Gang(
        cluster=snapshot.cluster,
        uid=document.gang.uid,
        kind=document.gang.kind,
        namespace=document.gang.namespace,
        name=document.gang.name,
        first_seen_at=snapshot.as_of,
        last_seen_at=snapshot.as_of,
    )


def verdict_apply(*, gang: Gang, document: ExplanationDocument, as_of: datetime) -> None:
    """Copy a document into the columns that lists read."""
    gang.placeable_since = placeable_since(gang=gang, document=document, as_of=as_of)
    gang.owner = (document.gang.owner or "")[:512]
    gang.shard = document.shard
    gang.verdict, gang.code = str(document.verdict), str(document.code)
    gang.who, gang.certainty = str(document.who), str(document.certainty)
    gang.sentence = document.sentence[:255]
    gang.subject = document.binding[0].source[:512] if document.binding else ""
    gang.stage = (document.stage or "")[:8]
    gang.waiting_since = _moment(document.waiting_since)
    gang.state = gang_state(gang=gang, document=document)


def gang_state(*, gang: Gang, document: ExplanationDocument) -> GangState:
    """Return whether the gang waits, is placed and has something to tell, or is fine."""
    if document.verdict is Verdict.HEALTHY and document.code in _NOTHING_TO_TELL:
        return GangState.FINE
    all_placed = bool(gang.pods_total) and gang.pods_waiting == 0
    if document.verdict in PLACED_VERDICTS or (all_placed and document.verdict in _WAITS_BY_PODS):
        return GangState.TELLS
    return GangState.WAITS


_WAITS_BY_PODS = frozenset({Verdict.PARTIAL, Verdict.NO_VERDICT})


def _timelines_write(
    snapshot: Snapshot, gangs: Sequence[Gang], documents: dict[str, ExplanationDocument]
) -> frozenset[int]:
    """Close rows whose verdict or code ended and open the new ones; return the gangs for which one was opened."""
    rows = ReasonTimeline.objects.filter(gang__cluster=snapshot.cluster_id, closed_at=None)
    standing = {row.gang_id: row for row in rows}
    opened = [gang for gang in gangs if _changed(standing.get(gang.pk), gang)]
    ended = [standing[gang.pk].pk for gang in opened if gang.pk in standing]
    for part in _batches(ended):
        ReasonTimeline.objects.filter(pk__in=part).update(closed_at=snapshot.as_of)
    new = [_timeline_row(snapshot, gang, documents[gang.uid]) for gang in opened]
    ReasonTimeline.objects.bulk_create(new, BATCH)
    return frozenset(gang.pk for gang in opened)


def _changed(row: ReasonTimeline | None, gang: Gang) -> bool:
    return row is None or (row.verdict, row.code) != (gang.verdict, gang.code)


def _timeline_row(snapshot: Snapshot, gang: Gang, document: ExplanationDocument) -> ReasonTimeline:
    return ReasonTimeline(
        gang=gang,
        snapshot=snapshot,
        verdict=gang.verdict,
        code=gang.code,
        who=gang.who,
        state=gang.state,
        sentence=document.sentence[:255],
        subject=gang.subject,
        gpus=gang.gpus_waiting or 0.0,
        opened_at=snapshot.as_of,
    )


def _explanations_write(
    snapshot: Snapshot, gangs: Sequence[Gang], documents: dict[str, ExplanationDocument], opened: frozenset[int]
) -> None:
    """Make these the current explanations; of the earlier ones keep those that opened a timeline row."""
    for part in _batches([gang.pk for gang in gangs]):
        before = ExplanationRecord.objects.filter(gang__in=part, is_current=True)
        before.filter(opens_timeline=False).delete()
        before.update(is_current=False)
    ExplanationRecord.objects.bulk_create(
        [_explanation_row(snapshot, gang, documents[gang.uid], gang.pk in opened) for gang in gangs], BATCH
    )


def _explanation_row(
    snapshot: Snapshot, gang: Gang, document: ExplanationDocument, opens_timeline: bool
) -> ExplanationRecord:
    return ExplanationRecord(
        snapshot=snapshot,
        gang=gang,
        opens_timeline=opens_timeline,
        verdict=gang.verdict,
        code=gang.code,
        who=gang.who,
        certainty=gang.certainty,
        sentence=gang.sentence,
        document=_encode(document).decode(),
    )


def _others_end(snapshot: Snapshot, documents: dict[str, ExplanationDocument]) -> None:
    """End what is not there any more: workloads without a PodGroup that are fixed or gone, timelines of gone gangs."""
    others = Gang.objects.filter(cluster=snapshot.cluster_id, gone_at=None).exclude(kind=PODGROUP)
    gone = [pk for pk, uid in others.values_list("pk", "uid") if uid not in documents]
    for part in _batches(gone):
        Gang.objects.filter(pk__in=part).update(gone_at=snapshot.as_of, last_seen_at=snapshot.as_of)
    left = ReasonTimeline.objects.filter(gang__cluster=snapshot.cluster_id, closed_at=None)
    for row in left.exclude(gang__gone_at=None).select_related("gang"):
        row.closed_at = max(row.opened_at, row.gang.gone_at or snapshot.as_of)
        row.save(update_fields=["closed_at"])


def _queues_write(snapshot: Snapshot, cycle: Cycle) -> None:
    """Put the cycle's shares and amounts beside each queue; one row per shard in which the queue plays."""
    found: dict[str, list[object]] = {}
    for entry in cycle.queues:
        content = msgspec.to_builtins(entry)
        found.setdefault(content.pop("name"), []).append(content)
    changed = []
    for queue in Queue.objects.filter(cluster=snapshot.cluster_id):
        if queue.cycle != found.get(queue.name, []):
            queue.cycle = found.get(queue.name, [])
            changed.append(queue)
    Queue.objects.bulk_update(changed, ["cycle"], BATCH)
    Queue.objects.filter(cluster=snapshot.cluster_id).update(cycle_as_of=snapshot.as_of)


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromtimestamp(parse_stamp(text), UTC)


def _batches(items: Sequence[int]) -> Iterable[Sequence[int]]:
    return (items[start : start + BATCH] for start in range(0, len(items), BATCH))
