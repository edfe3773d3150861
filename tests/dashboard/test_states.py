"""Every state a page can be in has its own shape: empty, filtered, first read, partial, stale, blind, removed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from apps.clusters.choices import Source
from apps.clusters.models import Cluster, KindFreshness
from apps.workloads.choices import GangState
from apps.workloads.models import Gang
from tests.dashboard.markup import Page, visible_text
from tests.dashboard.world import World, whole_world

POLL = 15


def age(world: World, polls: float, fault: str = "") -> None:
    Cluster.objects.update(read_as_of=datetime.now(UTC) - timedelta(seconds=POLL * polls), failures=3, fault=fault)


def test_nothing_waits(world: World, as_alice: Client) -> None:
    Gang.objects.update(state=GangState.FINE)
    text = visible_text(as_alice.get("/").content)
    assert "Nothing waits; 60 of 212 GPUs are free" in text
    assert "Every gang you may see has what it needs." in text


def test_before_the_first_answer_nothing_is_said_to_wait_or_not(world: World, as_alice: Client) -> None:
    Cluster.objects.update(diagnosed_as_of=None)
    Gang.objects.update(state=GangState.UNKNOWN, verdict="", code="")
    text = visible_text(as_alice.get("/").content)
    assert "17 of 17 gangs not diagnosed yet" in text
    assert "Nothing waits" not in text


def test_filters_that_hide_everything_are_named(world: World, as_alice: Client) -> None:
    text = visible_text(as_alice.get("/?queue=batch-eval&verdict=CONFIG").content)
    assert "No waiting gang matches" in text
    assert "The filters queue batch-eval and verdict Config hide all of them." in text
    assert "10 of 17 gangs wait for 174 GPUs" in text
    assert "No waiting gang matches 10 gangs wait." in text


def test_without_a_cluster_the_page_says_what_to_do(as_alice: Client) -> None:
    text = visible_text(as_alice.get("/").content)
    assert "No cluster is read yet" in text
    assert "0 of 0" not in text


def test_first_reading_shows_what_is_read_and_no_verdict(as_alice: Client) -> None:
    cluster = Cluster.objects.create(name="new", source=Source.KUBECONFIG)
    now = datetime.now(UTC)
    KindFreshness.objects.create(cluster=cluster, kind="Node", is_read=True, count=40, read_at=now, checked_at=now)
    KindFreshness.objects.create(cluster=cluster, kind="Pod", checked_at=now)
    text = visible_text(as_alice.get("/").content)
    assert "Reading new for the first time" in text
    assert "Node 40" in text
    assert "First read" in text


def test_partial_reading_is_in_the_strip_and_has_its_rules(world: World, as_alice: Client) -> None:
    assert "1 of 8 kinds not read: ResourceClaim (403)" in visible_text(as_alice.get("/").content)
    text = visible_text(as_alice.get("/clusters/fjord-1/").content)
    assert "fjord-1: 1 of 8 kinds could not be read" in text
    assert 'apiGroups: ["resource.k8s.io"] resources: ["resourceclaims"] verbs: ["get", "list"]' in text


def test_a_kind_that_nobody_installed_is_no_alarm(world: World, as_alice: Client) -> None:
    KindFreshness.objects.filter(kind="ResourceClaim").update(reason="not served")
    text = visible_text(as_alice.get("/").content)
    assert "1 kind not served" in text
    assert "kinds not read" not in text


def test_an_unread_amount_is_never_a_number(world: World, as_alice: Client) -> None:
    Gang.objects.filter(name="whisper-large-ft-1").update(gpus=None, gpus_waiting=None, pods_total=None)
    text = visible_text(as_alice.get("/clusters/fjord-1/gangs/mm-lab/whisper-large-ft-1/").content)
    assert "not read , not read" in text
    assert "whisper-large-ft-1 mm-lab multi-modal not read" in visible_text(as_alice.get("/").content)


@pytest.mark.parametrize("polls, word", [(2, "Live"), (4, "Stale"), (6, "Blind")])
def test_missed_polls_change_the_strip(world: World, as_alice: Client, polls: float, word: str) -> None:
    age(world, polls, "the API answers 429")
    content = as_alice.get("/").content
    text = visible_text(content)
    assert word in text
    assert ("3 polls missed: the API answers 429" in text) == (word != "Live")
    assert (f'class="fresh {word.lower()}"' in content.decode()) == (word != "Live")


def test_stale_data_is_laid_over_the_verdict(world: World, as_alice: Client) -> None:
    address = "/clusters/fjord-1/gangs/chat-prod/llama-70b-disagg-0/"
    assert "Proved" in visible_text(as_alice.get(address).content)
    age(world, 4)
    text = visible_text(as_alice.get(address).content)
    assert "Stale" in text
    assert "new verdicts are withheld" in text
    assert "Proved" not in text


def test_an_analysis_behind_the_reading_says_its_own_time(world: World, as_alice: Client) -> None:
    assert "Diagnosed as of" not in visible_text(as_alice.get("/").content)
    Cluster.objects.update(diagnosed_as_of=world.as_of - timedelta(minutes=5))
    assert "Diagnosed as of" in visible_text(as_alice.get("/").content)


def test_a_removed_cluster_keeps_its_pages(world: World, as_alice: Client) -> None:
    Cluster.objects.update(is_read=False, removed_at=world.now)
    assert "is no longer read" in visible_text(as_alice.get("/").content)
    assert as_alice.get("/clusters/fjord-1/gangs/chat-prod/llama-70b-disagg-0/").status_code == 200


def test_one_bad_cluster_of_two_rules_the_strip(world: World, as_alice: Client) -> None:
    whole_world("aurora-2")
    Cluster.objects.filter(name="aurora-2").update(read_as_of=datetime.now(UTC) - timedelta(hours=1))
    text = visible_text(as_alice.get("/").content)
    assert "Blind: aurora-2" in text
    assert "20 of 34 gangs wait for 348 GPUs" in text
    assert "Live" in visible_text(as_alice.get("/?cluster=fjord-1").content)


def test_pinned_to_the_past_says_so_and_leads_back(world: World, as_alice: Client) -> None:
    address = "/clusters/fjord-1/gangs/chat-prod/llama-70b-disagg-0/"
    content = as_alice.get(f"{address}?at={world.stamp(world.as_of).replace('+', '%2B')}").content
    assert "Back to live" in visible_text(content)
    assert "hx-get" not in content.decode()
    links = [link for link in Page(as_alice.get(address).content).links if "&at=" in link]
    assert len(links) == 3
    assert "Pinned at" in visible_text(as_alice.get(links[0]).content)
    before = as_alice.get(f"{address}?at=2020-01-01T00:00:00Z").content
    assert "No explanation of that moment is kept." in visible_text(before)
