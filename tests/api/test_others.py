"""Clusters, reasons, uploads, and the one shape that every error has."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework.test import APIClient

from apps.accounts.models import User
from apps.clusters.models import Cluster
from apps.diagnosis import tasks
from apps.diagnosis.models import Upload
from apps.diagnosis.services import uploads
from gangdash.engine.verdict import ReasonCode
from gangdash.reasons import REGISTRY
from tests.apps import raw

pytestmark = pytest.mark.django_db
OBJECTS = raw.cluster(raw.gang("huge", pods=3, gpus=8))
CONTENT = json.dumps({"kind": "List", "apiVersion": "v1", "asOf": "2026-11-30T09:00:00Z", "items": OBJECTS}).encode()
BINARY = "application/octet-stream"


@pytest.mark.usefixtures("scene")
def test_a_cluster_tells_both_of_its_times_and_no_credential(as_alice: APIClient) -> None:
    Cluster.objects.filter(name="west").update(is_read=False, fault="no route", fault_code="unreachable")
    east, west = as_alice.get("/api/v1/clusters").json()["results"]
    assert (east["read_as_of"], east["diagnosed_as_of"]) == ("2026-11-30T09:00:00Z", "2026-11-30T09:00:15Z")
    assert (west["freshness"], west["fault"]) == ("removed", "no route")
    assert not {"kubeconfig", "token", "server"} & set(east)


@pytest.mark.usefixtures("scene")
def test_health_tells_what_is_read_and_what_is_not_and_why(as_alice: APIClient) -> None:
    health = as_alice.get("/api/v1/clusters/east/health").json()
    kinds = {kind["kind"]: (kind["is_read"], kind["count"], kind["reason"]) for kind in health["kinds"]}
    assert kinds == {"Pod": (True, 6, ""), "Event": (False, None, "403: not allowed")}
    assert [poll["outcome"] for poll in health["polls"]] == ["read"]


def test_every_code_has_its_reason(as_alice: APIClient) -> None:
    rows = as_alice.get("/api/v1/reasons").json()["results"]
    assert [row["code"] for row in rows] == [code.value for code in ReasonCode]
    one = as_alice.get("/api/v1/reasons/QUEUE_LIMIT").json()
    assert (one["verdict"], one["meaning"]) == ("POLICY", REGISTRY[ReasonCode.QUEUE_LIMIT].meaning)
    assert as_alice.get("/api/v1/reasons/NO_SUCH").status_code == 404


@pytest.mark.parametrize("packing", [bytes, gzip.compress])
def test_a_file_as_the_body_is_answered(as_alice: APIClient, packing: Any) -> None:
    response = as_alice.post("/api/v1/diagnose?name=scene.json", packing(CONTENT), content_type=BINARY)
    assert response.status_code == 200
    answer = response.json()
    assert (answer["state"], answer["file_name"]) == ("done", "scene.json")
    explanations = answer["diagnosis"]["explanations"]
    assert [entry["gang"]["name"] for entry in explanations] == ["huge"]
    assert as_alice.get(response["Location"]).json() == answer


def test_a_file_in_a_form_is_answered_the_same(as_alice: APIClient) -> None:
    file = SimpleUploadedFile("snapshot", CONTENT)
    form = as_alice.post("/api/v1/diagnose", {"file": file}, format="multipart").json()
    body = as_alice.post("/api/v1/diagnose", CONTENT, content_type="application/json").json()
    assert form["diagnosis"] == body["diagnosis"]


def test_a_moment_can_be_named(as_alice: APIClient) -> None:
    response = as_alice.post("/api/v1/diagnose?as_of=2026-11-30T10:00:00Z", CONTENT, content_type=BINARY)
    assert response.json()["diagnosis"]["as_of"] == "2026-11-30T10:00:00Z"


def test_a_large_file_is_taken_and_answered_later(as_alice: APIClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "SMALL_PODS", 0)
    response = as_alice.post("/api/v1/diagnose", CONTENT, content_type=BINARY)
    assert (response.status_code, response.json()["diagnosis"]) == (202, None)
    assert as_alice.get(response["Location"]).json()["state"] == "waiting"
    tasks.diagnose_upload(response.json()["id"])
    done = as_alice.get(response["Location"]).json()
    assert (done["state"], done["diagnosis"]["explanations"][0]["gang"]["name"]) == ("done", "huge")


def test_an_answer_is_not_for_others(as_alice: APIClient, as_bob: APIClient) -> None:
    of_alice = as_alice.post("/api/v1/diagnose", CONTENT, content_type=BINARY)
    of_bob = as_bob.post("/api/v1/diagnose", CONTENT, content_type=BINARY)
    assert as_bob.get(of_alice["Location"]).status_code == 404
    assert as_alice.get(of_bob["Location"]).status_code == 200


def test_a_file_over_the_cap_is_refused_without_being_read_whole(as_alice: APIClient, settings: Any) -> None:
    settings.GANGDASH_UPLOAD_MAX_BYTES = 1024**2
    for answer in (
        as_alice.post("/api/v1/diagnose", b" " * (3 * 1024**2), content_type=BINARY),
        as_alice.post("/api/v1/diagnose", {"file": SimpleUploadedFile("x", b" " * (3 * 1024**2))}, format="multipart"),
    ):
        assert (answer.status_code, answer.json()["code"]) == (413, "upload_too_large")
    assert not Upload.objects.exists()


def test_what_is_no_snapshot_is_refused_with_its_reason(as_alice: APIClient) -> None:
    answer = as_alice.post("/api/v1/diagnose?name=a.json", b"{", content_type=BINARY)
    assert (answer.status_code, answer.json()["code"]) == (400, "snapshot_not_valid")
    assert answer.json()["detail"].startswith("a.json")
    assert as_alice.post("/api/v1/diagnose", {"other": "x"}, format="multipart").status_code == 400


PROBLEMS = [
    ("get", "/api/v1/gangs/nothing", {}, 404),
    ("get", "/api/v1/gangs?who=me", {}, 400),
    ("get", "/api/v1/clusters/none/health", {}, 404),
    ("get", "/api/v1/", {}, 404),
    ("get", "/api/v1/no/such/route", {}, 404),
    ("post", "/api/v1/tokens/x", {}, 404),
    ("get", "/api/v1/diagnose/no-uuid", {}, 404),
    ("get", "/api/v1/reasons/NONE", {}, 404),
    ("get", "/api/v1/gangs?cursor=%C3%A4", {}, 404),
    ("get", f"/api/v1/gangs?cursor={base64.b64encode(b'p=no-time').decode()}", {}, 404),
    ("get", f"/api/v1/gangs?ordering=name&cursor={base64.b64encode(b'p=%00').decode()}", {}, 404),
    ("get", "/api/v1/clusters/%00/health", {}, 404),
    ("get", f"/api/v1/gangs?ordering=gpus&cursor={base64.b64encode(b'p=no-number').decode()}", {}, 404),
    ("get", "/api/v1/gangs", {"HTTP_ACCEPT": "text/html"}, 406),
    ("post", "/api/v1/gangs", {}, 405),
    ("put", "/api/v1/tokens", {}, 405),
    ("delete", "/api/v1/clusters", {}, 405),
    ("options", "/api/v1/gangs", {}, 405),
    ("post", "/api/v1/tokens", {"data": "x", "content_type": "text/plain"}, 415),
    ("post", "/api/v1/tokens", {"data": "{}", "content_type": "application/json"}, 400),
    ("delete", "/api/v1/tokens/999", {}, 404),
    ("get", "/api/v1/diagnose/5a0c0b34-2c1e-4a6a-9e2a-3a6f0f1f5c11", {}, 404),
]


def test_every_error_has_one_shape(as_alice: APIClient, alice: User) -> None:
    for verb, path, more, status in PROBLEMS:
        response = getattr(as_alice, verb)(path, **more)
        assert response.status_code == status, (verb, path)
        assert response["Content-Type"] == "application/problem+json"
        body = json.loads(response.content)
        assert body["status"] == status
        assert {"type", "title", "status", "detail", "code"} <= set(body) <= {*body, "fields"}
        assert body["code"] == body["code"].lower()
