"""/objectives: the default, one set and taken back in person, refused for tokens and for those who see a part."""

from __future__ import annotations

import pytest
from rest_framework.test import APIClient

from apps.accounts.models import User
from apps.accounts.services import token_create
from apps.workloads.models import ServiceObjective

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("scene")]
PATH = "/api/v1/objectives"


def test_the_default_of_each_cluster_is_listed_with_its_standing(as_alice: APIClient) -> None:
    rows = as_alice.get(PATH).json()["results"]
    assert [(row["cluster"], row["id"], row["queue"], row["share"]) for row in rows] == [
        ("east", None, "", 0.95),
        ("west", None, "", 0.95),
    ]
    assert set(rows[0]["standing"]) >= {"met", "missed", "total", "share", "budget_left", "burn", "over_quota"}
    assert [row["cluster"] for row in as_alice.get(f"{PATH}?cluster=west").json()["results"]] == ["west"]


def test_one_is_set_replaced_and_taken_back(as_alice: APIClient) -> None:
    made = as_alice.post(PATH, {"cluster": "east", "queue": "q", "share": 0.9, "window_days": 7}, format="json")
    assert made.status_code == 201
    assert (made.json()["share"], made.json()["gpus_max"]) == (0.9, 64)
    again = as_alice.post(PATH, {"cluster": "east", "queue": "q", "share": 0.8}, format="json")
    assert again.json()["id"] == made.json()["id"]
    assert again.json()["window_days"] == 28
    assert as_alice.delete(f"{PATH}/{made.json()['id']}").status_code == 204
    assert as_alice.delete(f"{PATH}/{made.json()['id']}").status_code == 404
    assert not ServiceObjective.objects.exists()


@pytest.mark.parametrize(
    "body", [{}, {"cluster": "east", "share": 1}, {"cluster": "east", "within_seconds": 0}, {"cluster": ["east"]}]
)
def test_what_makes_no_promise_is_refused(as_alice: APIClient, body: dict[str, object]) -> None:
    answer = as_alice.post(PATH, body, format="json")
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")
    assert as_alice.post(PATH, {"cluster": "nowhere"}, format="json").status_code == 404


def test_only_an_admin_in_person_changes_one(as_bob: APIClient, alice: User) -> None:
    assert as_bob.get(PATH).json() == {"results": []}
    assert as_bob.post(PATH, {"cluster": "east"}, format="json").status_code == 403
    row = ServiceObjective.objects.create(cluster_id=_east())
    assert as_bob.delete(f"{PATH}/{row.pk}").status_code == 403
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {token_create(user=alice, name='ci').text}")
    assert client.get(PATH).status_code == 200
    for answer in (client.post(PATH, {"cluster": "east"}, format="json"), client.delete(f"{PATH}/{row.pk}")):
        assert answer.status_code == 403
    assert ServiceObjective.objects.count() == 1


def _east() -> int:
    from apps.clusters.models import Cluster

    return Cluster.objects.get(name="east").pk
