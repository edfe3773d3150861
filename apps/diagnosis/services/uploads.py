"""Snapshot files that people hand in: checked and reduced at once, answered at once where small, else by a worker.

Only the reduced objects are ever stored, so whatever secrets a file carries end with the request.
"""

from __future__ import annotations

import gzip
from datetime import UTC, datetime, timedelta
from functools import partial

import msgspec
from celery import current_app
from django.conf import settings
from django.db import transaction
from django.db.models import F, Q

from apps.accounts.models import User
from apps.accounts.services import audit_record
from apps.collector.packing import LEVEL, OWN, settled
from apps.diagnosis.choices import UploadState
from apps.diagnosis.models import Upload
from apps.errors import ApplicationError
from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.replay import replay
from gangdash.snapshot.archive import Limits, SnapshotError, load_bytes, snapshot_of, write_dump

UPLOAD_TASK = "diagnosis.diagnose_upload"
SMALL_PODS = 400
SMALL_NODES = 100
"""A snapshot up to this size is answered inside the request: well under a second on one core."""
ATTEMPTS_MAX = 2
WAITING_MAX = 5
"""Uploads of one person that may wait at a time."""


def upload_create(
    *, user: User, file_name: str, content: bytes, as_of: datetime | None = None, address: str | None = None
) -> Upload:
    """Take a snapshot file and return its upload, answered where it is small."""
    name = file_name[:255] or "snapshot"
    if Upload.objects.filter(user=user, state=UploadState.WAITING).count() >= WAITING_MAX:
        raise ApplicationError("too_many_uploads", f"{WAITING_MAX} of your files still wait for their answer")
    limits = Limits(
        packed=settings.GANGDASH_UPLOAD_MAX_BYTES,
        unpacked=settings.GANGDASH_UNPACKED_MAX_BYTES,
        nesting=settings.GANGDASH_NESTING_MAX,
    )
    try:
        reading = load_bytes(content, name=name, as_of=as_of, limits=limits)
        snapshot = snapshot_of(reading)
    except SnapshotError as error:
        raise ApplicationError("snapshot_not_valid", str(error)) from error
    upload = Upload(user=user, file_name=name)
    if _is_small(snapshot):
        _answer(upload, snapshot)
    else:
        upload.packed = gzip.compress(write_dump(settled(reading, snapshot)), LEVEL, mtime=0)
    with transaction.atomic():
        upload.save()
        audit_record(action="snapshot.upload", actor=user, target=name, address=address)
        if upload.state == UploadState.WAITING:
            transaction.on_commit(partial(upload_ask, upload_id=str(upload.pk)), robust=True)
    return upload


def upload_ask(*, upload_id: str) -> None:
    """Ask a worker for the answer; a lost request is repeated by the tick that looks for what is due."""
    limit = settings.GANGDASH_ANALYSIS_SECONDS
    current_app.send_task(
        UPLOAD_TASK, args=[upload_id], queue="analyse", soft_time_limit=limit, time_limit=limit + 30, expires=limit
    )


def uploads_due(*, now: datetime) -> list[str]:
    """Return uploads that wait and that no worker holds, oldest first."""
    rows = Upload.objects.filter(_is_free(now), state=UploadState.WAITING).order_by("created_at")
    return [str(pk) for pk in rows.values_list("pk", flat=True)]


def upload_claim(*, upload_id: str, now: datetime) -> Upload | None:
    """Take an upload for analysis; None where it is answered, held or gone. Too many attempts end it."""
    waiting = Upload.objects.filter(_is_free(now), pk=upload_id, state=UploadState.WAITING)
    if waiting.filter(attempts__gte=ATTEMPTS_MAX).update(
        state=UploadState.FAILED, ended_at=now, detail="The analysis ended without an answer.", packed=b""
    ):
        return None
    if not waiting.update(started_at=now, attempts=F("attempts") + 1):
        return None
    return Upload.objects.get(pk=upload_id)


def upload_run(*, upload: Upload) -> None:
    """Answer a claimed upload."""
    snapshot = snapshot_of(load_bytes(bytes(upload.packed), name=upload.file_name, limits=OWN))
    _answer(upload, snapshot)
    upload.save()


def upload_fail(*, upload: Upload, detail: str, now: datetime) -> None:
    """Record that there will be no answer."""
    Upload.objects.filter(pk=upload.pk, state=UploadState.WAITING).update(
        state=UploadState.FAILED, ended_at=now, detail=detail[:512], packed=b""
    )


def _answer(upload: Upload, snapshot: ClusterSnapshot) -> None:
    upload.document = msgspec.json.encode(replay(snapshot)).decode()
    upload.state, upload.ended_at, upload.packed = UploadState.DONE, datetime.now(UTC), b""


def _is_small(snapshot: ClusterSnapshot) -> bool:
    return len(snapshot.pods) <= SMALL_PODS and len(snapshot.nodes) <= SMALL_NODES


def _is_free(now: datetime) -> Q:
    hold = timedelta(seconds=settings.GANGDASH_ANALYSIS_SECONDS + 60)
    return Q(started_at=None) | Q(started_at__lt=now - hold)
