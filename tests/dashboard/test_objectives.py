"""The objectives' page: what is promised and how it stands, who may change it, and what a wrong form says."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from apps.accounts.models import AuditEntry
from apps.clusters.models import Cluster
from apps.workloads.models import Attempt, Gang, ServiceObjective
from tests.dashboard.markup import Page, visible_text
from tests.dashboard.world import World

ADDRESS = "/objectives/?cluster=fjord-1"
TERMS = {"queue": "", "percent": "90", "gpus_max": "32", "minutes": "5", "window_days": "7"}


@pytest.fixture
def start(world: World) -> Gang:
    """Return the only gang that counts: it started within two minutes, an hour ago."""
    Attempt.objects.all().delete()
    made = timezone.now() - timedelta(hours=1)
    fjord = Cluster.objects.get(name="fjord-1")
    gang = Gang.objects.create(cluster=fjord, uid="s", namespace="n", name="s", gpus=4, first_seen_at=made,
                               last_seen_at=made)  # fmt: skip
    Attempt.objects.create(cluster=fjord, gang=gang, lineage="s", created_at=made, seen_at=made,
                           bound_at=made + timedelta(minutes=2))  # fmt: skip
    return gang


def test_the_default_is_shown_until_one_is_set(start: Gang, as_alice: Client) -> None:
    text = visible_text(as_alice.get(ADDRESS).content)
    assert "Whole cluster default" in text
    assert "95 % of gangs up to 64 GPUs within 10 min over 28 days" in text.replace("\u00a0", " ")
    assert "100 % left" in text
    assert "No objective has overspent its budget" in text
    answer = as_alice.post(ADDRESS, TERMS, follow=True)
    assert not Page(answer.content).faults
    text = visible_text(answer.content).replace("\u00a0", " ")
    assert "The objective is set." in text
    assert "90 % of gangs up to 32 GPUs within 5 min over 7 days" in text
    assert "default" not in text
    [row] = ServiceObjective.objects.all()
    assert (row.share, row.within_seconds, row.window_days) == (0.9, 300, 7)
    assert AuditEntry.objects.filter(action="objective.set", actor__username="alice").exists()


def test_one_is_taken_back(world: World, as_alice: Client) -> None:
    as_alice.post(ADDRESS, TERMS | {"queue": "sandbox"})
    [row] = ServiceObjective.objects.all()
    assert as_alice.get(f"/objectives/{row.pk}/remove").status_code == 405
    answer = as_alice.post(f"/objectives/{row.pk}/remove", follow=True)
    assert "The objective is taken back." in visible_text(answer.content)
    assert not ServiceObjective.objects.exists()
    assert as_alice.post(f"/objectives/{row.pk}/remove").status_code == 404


@pytest.mark.parametrize("wrong", [{"percent": "100"}, {"minutes": "0"}, {"window_days": ""}, {"gpus_max": "many"}])
def test_a_wrong_form_says_where(world: World, as_alice: Client, wrong: dict[str, str]) -> None:
    answer = as_alice.post(ADDRESS, TERMS | wrong)
    assert answer.status_code == 422
    assert not Page(answer.content).faults
    assert b'class="errorlist"' in answer.content
    assert not ServiceObjective.objects.exists()


def test_who_sees_some_namespaces_sees_no_standing_and_sets_nothing(world: World, as_bob: Client) -> None:
    text = visible_text(as_bob.get(ADDRESS).content)
    assert "they take the right to see all of them" in text
    assert "Set an objective" not in text
    assert as_bob.post(ADDRESS, TERMS).status_code == 403
    row = ServiceObjective.objects.create(cluster=Cluster.objects.get(name="fjord-1"))
    assert as_bob.post(f"/objectives/{row.pk}/remove").status_code == 403
    assert ServiceObjective.objects.count() == 1
