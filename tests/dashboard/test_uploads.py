"""A dropped file gets the command line's answer, a broken one gets one clear line."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from apps.accounts.models import User
from apps.diagnosis.choices import UploadState
from apps.diagnosis.models import Upload
from apps.workloads.models import Gang
from tests.dashboard.markup import Page, visible_text
from tests.dashboard.world import World, bind, document

EMPTY_LIST = {"apiVersion": "v1", "kind": "List", "asOf": "2026-11-30T08:56:00Z", "items": []}


def send(client: Client, content: bytes, name: str = "cluster.json", **values: str) -> Any:
    return client.post("/uploads/", {"file": SimpleUploadedFile(name, content), **values})


def answered(user: User, gang: Gang, **changes: Any) -> Upload:
    told = document(gang, "CONFIG", "QUEUE_MISSING", "Queue x does not exist.", who="owner", **changes)
    diagnosis = {
        "snapshot": "case.json",
        "digest": "sha256:00",
        "as_of": "2026-11-30T08:56:00Z",
        "engine": "1.0.0",
        "cycle": {"gangs": [{}, {}], "queues": []},
        "explanations": [told],
        "not_read": [{"kind": "ResourceClaim", "reason": "absent", "matters_to": 1}],
        "not_modelled": [],
        "oddities": [{"object": "Pod/a/b", "field": "spec.priority", "problem": "is no number"}],
    }
    return Upload.objects.create(
        user=user, file_name="case.json", state=UploadState.DONE, document=json.dumps(diagnosis)
    )


def test_a_small_file_is_answered_at_once(as_alice: Client) -> None:
    answer = send(as_alice, json.dumps(EMPTY_LIST).encode())
    assert answer.status_code == 302
    page = as_alice.get(answer["Location"])
    assert "0 of 0 gangs wait in cluster.json" in visible_text(page.content)
    assert "As of 2026-11-30T08:56:00Z" in visible_text(page.content)
    assert as_alice.get(f"{answer['Location']}diagnosis.json").json()["snapshot"] == "cluster.json"


@pytest.mark.parametrize(
    "content", [b"", b"{", b"hello", b"PK\x03\x04broken", b"[1, 2]", b'{"kind": "List", "items": 3}']
)
def test_a_broken_file_gets_one_line_beside_the_field(as_alice: Client, content: bytes) -> None:
    answer = send(as_alice, content)
    assert answer.status_code == 422
    assert not Page(answer.content).faults
    text = visible_text(answer.content)
    assert "cluster.json" in text
    assert "Traceback" not in text
    assert not Upload.objects.exists()


def test_a_file_over_the_cap_is_refused(as_alice: Client, settings: Any) -> None:
    settings.GANGDASH_UPLOAD_MAX_BYTES = 1024**2
    answer = send(as_alice, b" " * (1024**2 + 1))
    assert answer.status_code == 422
    assert "larger than 1 MiB" in visible_text(answer.content)


def test_a_time_without_a_zone_is_refused(as_alice: Client) -> None:
    answer = send(as_alice, json.dumps(EMPTY_LIST).encode(), as_of="2026-11-30 08:56")
    assert answer.status_code == 422
    assert "Write the time with its zone" in visible_text(answer.content)


def test_an_answer_tells_what_waits_and_what_the_file_does_not_say(world: World, as_alice: Client) -> None:
    need = bind("queue.exists", "x", ("x", None, "name"), "Queue/x")
    upload = answered(User.objects.get(username="alice"), Gang.objects.get(name="whisper-large-ft-1"), binding=[need])
    content = as_alice.get(f"/uploads/{upload.pk}/").content
    text = visible_text(content)
    assert "1 of 2 gangs waits in case.json" in text
    assert "Queue x does not exist. QUEUE_MISSING" in text
    assert "ResourceClaim (absent, matters to 1 gang)" in text
    assert "Pod/a/b spec.priority: is no number" in text
    assert not Page(content).faults


def test_a_waiting_file_asks_again_and_a_failed_one_says_why(as_alice: Client) -> None:
    user = User.objects.get(username="alice")
    upload = Upload.objects.create(user=user, file_name="big.zip")
    page = as_alice.get(f"/uploads/{upload.pk}/").content
    assert "big.zip is being analysed" in visible_text(page)
    assert f'hx-get="/uploads/{upload.pk}/fragment"' in page.decode()
    Upload.objects.update(state=UploadState.FAILED, detail="The analysis ended without an answer.")
    text = visible_text(as_alice.get(f"/uploads/{upload.pk}/").content)
    assert "big.zip got no answer" in text
    assert "The analysis ended without an answer." in text


def test_only_the_uploader_and_admins_see_an_answer(world: World, as_alice: Client, as_bob: Client) -> None:
    gang = Gang.objects.get(name="whisper-large-ft-1")
    hers = answered(User.objects.get(username="alice"), gang)
    his = answered(User.objects.get(username="bob"), gang)
    assert as_bob.get(f"/uploads/{hers.pk}/").status_code == 404
    assert as_bob.get(f"/uploads/{hers.pk}/diagnosis.json").status_code == 404
    assert as_bob.get(f"/uploads/{his.pk}/").status_code == 200
    assert as_alice.get(f"/uploads/{his.pk}/").status_code == 200
    assert as_alice.get("/uploads/no-such-upload/").status_code == 404
