"""Reads of gangs: what the headline counts, how causes group, and that nobody sees more than is theirs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from apps.accounts.scope import EVERYTHING, NOTHING, Scope
from apps.clusters.models import Cluster
from apps.workloads.choices import GangState
from apps.workloads.models import Gang, Pod
from apps.workloads.selectors import (
    CauseGroup,
    GangFilter,
    cause_groups,
    filter_choices,
    gang_by_name,
    gang_get,
    gang_list,
    gang_waiting_list,
    waiting_totals,
    who_tiles,
)
from apps.workloads.veil import HIDDEN, Veil, veil_for

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
BOB = Scope(namespaces=frozenset({("east", "team-a")}))


def gang(name: str, *, cluster: str = "east", namespace: str = "team-a", **more: Any) -> Gang:
    """Store a waiting gang for one cause."""
    owner, _ = Cluster.objects.get_or_create(name=cluster, defaults={"source": "folder"})
    fields: dict[str, Any] = {
        "uid": f"{namespace}-{name}",
        "state": GangState.WAITS,
        "verdict": "NO_FIT",
        "code": "GPUS_BUSY",
        "who": "cluster_admin",
        "subject": "Node/n1",
        "gpus": 8,
        "gpus_waiting": 8,
        "waiting_since": NOW,
        "first_seen_at": NOW,
        "last_seen_at": NOW,
    }
    return Gang.objects.create(cluster=owner, namespace=namespace, name=name, **fields | more)


def test_the_headline_counts_what_exists_waits_and_tells() -> None:
    gang("waits")
    gang("late", gpus_waiting=None)
    gang("fine", state=GangState.FINE)
    gang("tells", state=GangState.TELLS)
    gang("new", state=GangState.UNKNOWN)
    gang("gone", gone_at=NOW)
    totals = waiting_totals(scope=EVERYTHING)
    assert (totals.gangs, totals.waiting, totals.gpus_waiting) == (5, 2, 8)
    assert (totals.telling, totals.undiagnosed) == (1, 1)


def test_an_empty_store_counts_nothing() -> None:
    totals = waiting_totals(scope=EVERYTHING)
    assert (totals.gangs, totals.waiting, totals.gpus_waiting) == (0, 0, 0)


def test_waiting_gangs_come_longest_first_and_those_without_a_time_last() -> None:
    gang("second", waiting_since=NOW)
    gang("unknown", waiting_since=None)
    gang("first", waiting_since=NOW - timedelta(hours=1))
    assert [row.name for row in gang_waiting_list(scope=EVERYTHING)] == ["first", "second", "unknown"]


def names(groups: list[CauseGroup]) -> list[tuple[str, float, list[str]]]:
    return [(group.code, group.gpus, [row.name for row in group.gangs]) for group in groups]


def test_gangs_of_one_cause_are_one_group_with_most_gpus_first() -> None:
    gang("a", waiting_since=NOW - timedelta(minutes=5))
    gang("b")
    gang("other-node", subject="Node/n2", gpus_waiting=4)
    gang("limit", code="QUEUE_LIMIT", verdict="POLICY", gpus_waiting=64)
    groups = cause_groups(scope=EVERYTHING)
    assert names(groups) == [
        ("QUEUE_LIMIT", 64, ["limit"]),
        ("GPUS_BUSY", 16, ["a", "b"]),
        ("GPUS_BUSY", 4, ["other-node"]),
    ]
    assert groups[1].since == NOW - timedelta(minutes=5)
    assert len({group.key for group in groups}) == 3


def test_tiles_say_who_has_to_touch_what() -> None:
    gang("a")
    gang("b", subject="Node/n2", gpus_waiting=16)
    gang("c", who="owner", subject="", gpus_waiting=None)
    tiles = who_tiles(scope=EVERYTHING)
    assert [(tile.who, tile.gangs, tile.gpus, tile.subjects) for tile in tiles] == [
        ("cluster_admin", 2, 24, ("Node/n2", "Node/n1")),
        ("owner", 1, 0, ()),
    ]


def test_filters_offer_what_is_there() -> None:
    gang("a", queue="q")
    gang("b", cluster="west", namespace="team-b", code="QUEUE_LIMIT", queue="")
    assert filter_choices(scope=EVERYTHING) == {
        "cluster": ["east", "west"],
        "namespace": ["team-a", "team-b"],
        "queue": ["q"],
        "verdict": ["NO_FIT"],
        "code": ["GPUS_BUSY", "QUEUE_LIMIT"],
        "who": ["cluster_admin"],
    }


def test_text_means_all_of_its_words_anywhere_in_the_names() -> None:
    gang("llama-70b", queue="serving")
    gang("llama-8b", queue="batch")
    found = gang_list(scope=EVERYTHING, view=GangFilter(text="LLAMA serv"))
    assert [row.name for row in found] == ["llama-70b"]


def test_nobody_sees_more_than_is_theirs() -> None:
    mine = gang("mine")
    gang("theirs", namespace="team-b")
    gang("far", cluster="west")
    assert [row.name for row in gang_list(scope=BOB)] == ["mine"]
    assert gang_list(scope=NOTHING).count() == 0
    assert waiting_totals(scope=BOB).waiting == 1
    assert len(cause_groups(scope=BOB)) == 1
    assert filter_choices(scope=BOB)["namespace"] == ["team-a"]
    assert gang_get(scope=BOB, public_id=mine.public_id) == mine
    for public_id in ("east~team-b-theirs", "west~team-a-far"):
        with pytest.raises(Gang.DoesNotExist):
            gang_get(scope=BOB, public_id=public_id)


def test_a_gang_of_a_removed_cluster_is_found_and_not_listed() -> None:
    found = gang("a")
    Cluster.objects.update(is_read=False)
    assert gang_list(scope=EVERYTHING).count() == 0
    assert gang_get(scope=EVERYTHING, public_id=found.public_id) == found


def test_a_name_means_the_gang_that_exists_or_the_one_gone_last() -> None:
    def named() -> str:
        return gang_by_name(scope=EVERYTHING, cluster="east", namespace="team-a", name="a").uid

    gang("a", uid="first", gone_at=NOW)
    gang("a", uid="second", gone_at=NOW + timedelta(hours=1))
    assert named() == "second"
    gang("a", uid="third")
    assert named() == "third"
    with pytest.raises(Gang.DoesNotExist):
        gang_by_name(scope=NOTHING, cluster="east", namespace="team-a", name="a")


@pytest.mark.parametrize(
    "text, shown",
    [
        ("held by team-b/runs now", f"held by {HIDDEN} now"),
        ("held by PodGroup/team-b/runs.", f"held by {HIDDEN}."),
        ("team-b/a, team-a/b and team-b/c-1.x", f"{HIDDEN}, team-a/b and {HIDDEN}"),
        ("8/16 nvidia.com/gpu on block-1/rack-2", "8/16 nvidia.com/gpu on block-1/rack-2"),
        ("x/team-b/y and kai.team-b/z", "x/team-b/y and kai.team-b/z"),
        ("queue team-b", "queue team-b"),
    ],
)
def test_the_veil_hides_references_and_nothing_else(text: str, shown: str) -> None:
    assert Veil({"east": frozenset({"team-b"})}).text(text, cluster="east") == shown
    assert Veil().text(text, cluster="east") == text


def test_the_veil_knows_namespaces_of_gangs_and_of_loose_pods() -> None:
    mine = gang("mine")
    gang("theirs", namespace="team-b")
    Pod.objects.create(cluster=mine.cluster, uid="p", namespace="team-c", name="p", phase="Running")
    gang("far", cluster="west", namespace="team-d")
    assert veil_for(scope=BOB).hidden == {"east": {"team-b", "team-c"}}
    assert veil_for(scope=EVERYTHING).hidden == {}
