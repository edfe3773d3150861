"""The difference between the cluster's clock and ours is measured by each poll and said on the health page."""

from __future__ import annotations

import pytest
from django.test import Client

from apps.accounts.models import User
from apps.clusters.models import Cluster
from apps.dashboard.views.clusters import skew_words


@pytest.mark.parametrize(
    "seconds, words",
    [(None, ""), (0.4, ""), (-1.9, ""), (3.2, "3 s ahead of"), (-4000.0, "4,000 s behind")],
)
def test_small_differences_are_not_worth_a_word(seconds: float | None, words: str) -> None:
    assert skew_words(seconds) == words


@pytest.mark.parametrize("seconds, is_said", [(None, False), (0.2, False), (61.0, True)])
def test_the_health_page_says_it(client: Client, alice: User, seconds: float | None, is_said: bool) -> None:
    Cluster.objects.create(name="east", source="folder", skew_seconds=seconds)
    client.force_login(alice)
    text = client.get("/clusters/east/").content.decode()
    assert ("Its clock is 61 s ahead of ours." in text) is is_said
