"""POST /whatif: both forms of a change, the answer as documented, refusals with their codes, whose eyes it is for."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.cache import cache
from rest_framework.test import APIClient
from rest_framework.throttling import ScopedRateThrottle

from apps.accounts.choices import TokenScope
from apps.accounts.models import User
from apps.accounts.services import token_create
from apps.clusters.models import Cluster
from apps.diagnosis.models import Snapshot
from apps.workloads.veil import HIDDEN
from tests.api.conftest import asking
from tests.apps.diagnosis.analysed import analysed, busy_cluster

PATH = "/api/v1/whatif"


@pytest.fixture
def moment(db: None) -> Snapshot:
    cache.clear()
    return analysed(Cluster.objects.create(name="east", source="folder"), busy_cluster())


def ask(client: APIClient, *changes: Any, **more: Any) -> Any:
    return client.post(PATH, {"cluster": "east", "changes": list(changes), **more}, format="json")


def test_text_and_object_ask_the_same(moment: Snapshot, as_alice: APIClient) -> None:
    text = ask(as_alice, "uncordon:n2")
    assert text.status_code == 200
    assert text.json()["base_is_newest"] is True
    assert text.json()["answer"]["starts"] == ["team-a/mine"]
    assert text.json()["answer"]["digest"] == moment.digest
    assert ask(as_alice, {"kind": "uncordon", "object": "n2"}).json() == text.json()


def test_the_change_of_a_fix_is_taken_with_what_goes_with_it(moment: Snapshot, as_alice: APIClient) -> None:
    fix = {"kind": "uncordon", "object": "Node/n2", "also": ["add_nodes:n1:count=1"]}
    answer = ask(as_alice, fix).json()["answer"]
    assert answer["starts"] == ["team-a/mine", "team-b/theirs"]
    assert len(answer["changes"]) == 2


def test_bob_reads_counts_and_no_names_of_others(moment: Snapshot, as_bob: APIClient) -> None:
    answer = ask(as_bob, "uncordon:n2", "add_nodes:n1:count=1").json()["answer"]
    assert answer["starts"] == ["team-a/mine", HIDDEN]
    assert answer["before"]["gangs_waiting"] == 1


def test_bob_cannot_ask_about_gangs_of_others(moment: Snapshot, as_bob: APIClient) -> None:
    there, nowhere = ask(as_bob, "evict_gang:team-b/theirs"), ask(as_bob, "evict_gang:team-b/nobody")
    assert (there.status_code, nowhere.status_code) == (400, 400)
    assert there.json()["detail"].replace("theirs", "nobody") == nowhere.json()["detail"]


@pytest.mark.parametrize(
    "body, status, code",
    [
        ({"cluster": "west", "changes": ["uncordon:n2"]}, 404, "not_found"),
        ({"cluster": "east", "changes": []}, 400, "invalid"),
        ({"cluster": "east", "changes": [3]}, 400, "invalid"),
        ({"cluster": "east", "changes": ["nonsense:n2"]}, 400, "invalid"),
        ({"cluster": "east", "changes": ["uncordon:nowhere"]}, 400, "change_not_valid"),
        ({"cluster": "east", "changes": ["uncordon:n2"] * 21}, 400, "invalid"),
        ({"cluster": "east", "changes": ["uncordon:n2"], "base": "sha256:gone"}, 410, "dump_expired"),
        ({"cluster": "east", "changes": ["uncordon:n2"], "check_digest": "sha256:old"}, 409, "base_moved"),
    ],
)
def test_refusals_have_their_codes(
    moment: Snapshot, as_alice: APIClient, body: dict[str, Any], status: int, code: str
) -> None:
    answer = as_alice.post(PATH, body, format="json")
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer["Content-Type"] == "application/problem+json"


def test_nobody_gets_in_without_a_login_and_tokens_need_to_read(moment: Snapshot, alice: User) -> None:
    assert ask(asking(None), "uncordon:n2").status_code == 401
    for scope, status in ((TokenScope.READ, 200), (TokenScope.DIAGNOSE, 403)):
        text = token_create(user=alice, name=scope, scopes=[scope]).text
        client = APIClient()
        client.credentials(HTTP_AUTHORIZATION=f"Bearer {text}")
        assert ask(client, "uncordon:n2").status_code == status


def test_questions_are_throttled(moment: Snapshot, as_alice: APIClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ScopedRateThrottle, "THROTTLE_RATES", {"whatif": "1/min"})
    assert ask(as_alice, "uncordon:n2").status_code == 200
    refused = ask(as_alice, "uncordon:n2")
    assert refused.status_code == 429
    assert int(refused["Retry-After"]) > 0
