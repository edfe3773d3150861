"""Snapshot files that people hand in: checked at once, answered once, nothing secret kept."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import msgspec
import pytest
import time_machine
from celery.exceptions import SoftTimeLimitExceeded

from apps.accounts.models import AuditEntry, User
from apps.diagnosis import tasks
from apps.diagnosis.models import Upload
from apps.diagnosis.selectors import upload_get, upload_list
from apps.diagnosis.services import uploads
from apps.diagnosis.services.uploads import upload_create, uploads_due
from apps.errors import ApplicationError
from gangdash.replay import replay
from gangdash.snapshot.archive import load_bytes, snapshot_of
from tests.apps import raw
from tests.apps.diagnosis.conftest import NOW

SECRET = "hunter2-do-not-store"
OBJECTS = raw.cluster(raw.gang("huge", pods=3, gpus=8), raw.pod("x", "huge", secret=SECRET))
CONTENT = json.dumps({"kind": "List", "apiVersion": "v1", "asOf": "2026-11-30T09:00:00Z", "items": OBJECTS}).encode()


@pytest.fixture(autouse=True)
def clock() -> Iterator[Any]:
    with time_machine.travel(NOW, tick=False) as traveller:
        yield traveller


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every file count as too large to be answered in the request."""
    monkeypatch.setattr(uploads, "SMALL_PODS", 0)


def upload(user: User, content: bytes = CONTENT) -> Upload:
    return upload_create(user=user, file_name="scene.json", content=content)


def expected() -> dict[str, Any]:
    """Return what the command line says on the file itself."""
    answer: dict[str, Any] = msgspec.to_builtins(replay(snapshot_of(load_bytes(CONTENT, name="scene.json"))))
    return answer


def test_a_small_file_is_answered_at_once(alice: User) -> None:
    done = upload(alice)
    assert done.state == "done"
    assert json.loads(Upload.objects.get().document) == expected()
    assert AuditEntry.objects.filter(action="snapshot.upload", actor=alice).count() == 1


@pytest.mark.usefixtures("large")
def test_a_large_file_waits_and_gets_the_same_answer(alice: User) -> None:
    waiting = upload(alice)
    assert (waiting.state, waiting.document) == ("waiting", "")
    tasks.diagnose_upload(str(waiting.pk))
    done = Upload.objects.get()
    assert (done.state, bytes(done.packed)) == ("done", b"")
    assert json.loads(done.document) == expected()


@pytest.mark.usefixtures("large")
def test_answering_twice_or_after_the_end_changes_nothing(alice: User) -> None:
    waiting = upload(alice)
    tasks.diagnose_upload(str(waiting.pk))
    before = Upload.objects.values().get()
    tasks.diagnose_upload(str(waiting.pk))
    assert Upload.objects.values().get() == before
    Upload.objects.all().delete()
    tasks.diagnose_upload(str(waiting.pk))


@pytest.mark.usefixtures("large")
def test_what_a_file_carries_in_secrets_is_not_stored(alice: User) -> None:
    waiting = upload(alice)
    packed = gzip.decompress(bytes(Upload.objects.get().packed)).decode()
    assert '"huge-0"' in packed
    assert SECRET not in packed
    tasks.diagnose_upload(str(waiting.pk))
    assert SECRET not in Upload.objects.get().document


@pytest.mark.usefixtures("large")
def test_a_lost_request_is_taken_up_by_the_tick(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(uploads, "upload_ask", lambda *, upload_id: asked.append(upload_id))
    waiting = upload(alice)
    assert uploads_due(now=NOW) == [str(waiting.pk)]
    tasks.diagnose_due()
    assert asked == [str(waiting.pk)]


@pytest.mark.usefixtures("large")
def test_a_killed_analysis_is_tried_once_more_and_then_given_up(
    alice: User, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = upload(alice)
    monkeypatch.setattr(uploads, "replay", _killed)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            tasks.diagnose_upload(str(waiting.pk))
        tasks.diagnose_upload(str(waiting.pk))  # held: nothing happens
        clock.shift(timedelta(minutes=17))
    tasks.diagnose_upload(str(waiting.pk))
    failed = Upload.objects.get()
    assert (failed.state, failed.attempts, bytes(failed.packed)) == ("failed", 2, b"")
    assert uploads_due(now=NOW + timedelta(days=1)) == []


def _killed(*_arguments: Any, **_options: Any) -> None:
    raise KeyboardInterrupt


def _broken(*_arguments: Any, **_options: Any) -> None:
    raise ZeroDivisionError


def _late(*_arguments: Any, **_options: Any) -> None:
    raise SoftTimeLimitExceeded


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("fault, words", [(_broken, "ZeroDivisionError"), (_late, "900 s")])
def test_an_analysis_that_breaks_tells_the_person_who_waits(
    alice: User, monkeypatch: pytest.MonkeyPatch, fault: Any, words: str
) -> None:
    waiting = upload(alice)
    monkeypatch.setattr(uploads, "replay", fault)
    tasks.diagnose_upload(str(waiting.pk))
    failed = Upload.objects.get()
    assert failed.state == "failed"
    assert words in failed.detail


@pytest.mark.parametrize(
    "content", [b"", b"{", b'{"kind": "Pod"}', b"PK\x03\x04 no zip", b"\x1f\x8b no gzip", b"\xff\xfe"]
)
def test_what_is_no_snapshot_is_refused_in_one_line(alice: User, content: bytes) -> None:
    with pytest.raises(ApplicationError) as refusal:
        upload(alice, content)
    assert refusal.value.code == "snapshot_not_valid"
    assert "\n" not in refusal.value.detail
    assert not Upload.objects.exists()


def test_a_file_over_the_unpacked_cap_is_refused(alice: User, settings: Any) -> None:
    settings.GANGDASH_UNPACKED_MAX_BYTES = 10_000
    with pytest.raises(ApplicationError) as refusal:
        upload(alice, gzip.compress(CONTENT + b" " * 20_000))
    assert refusal.value.code == "snapshot_not_valid"


@pytest.mark.usefixtures("large")
def test_nobody_can_fill_the_queue_alone(alice: User, bob: User) -> None:
    for _ in range(uploads.WAITING_MAX):
        upload(alice)
    with pytest.raises(ApplicationError) as refusal:
        upload(alice)
    assert refusal.value.code == "too_many_uploads"
    assert upload(bob).state == "waiting"


def test_an_answer_is_for_the_uploader_and_for_admins(alice: User, bob: User) -> None:
    of_alice, of_bob = upload(alice), upload(bob)
    assert upload_get(user=alice, upload_id=str(of_bob.pk)) == of_bob
    assert set(upload_list(user=alice)) == {of_alice, of_bob}
    assert set(upload_list(user=bob)) == {of_bob}
    with pytest.raises(Upload.DoesNotExist):
        upload_get(user=bob, upload_id=str(of_alice.pk))
