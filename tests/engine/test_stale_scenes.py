"""Stale gangs: who is one, and when the grace period is over."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from gangdash.engine.model.podgroup import SubGroupSpec
from tests.engine.builders import NOW, Cluster, counts, outcome


def _broken_gang(stale_for: float | None, *, grace: float | None = None, other: str = "Failed") -> Cluster:
    """A gang of two of which one pod runs; the other has ended."""
    cluster = Cluster()
    cluster.node("n0", 2)
    cluster.gang("g", 0, group={"min_member": 2, "staleness_grace": grace})
    cluster.pod("g", 0, on="n0")
    cluster.pod("g", 1, on="n0", status=other)
    if stale_for is not None:
        when = datetime.fromtimestamp(NOW - stale_for, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        meta = replace(cluster.podgroups[0].meta, annotations={"kai.scheduler/stale-podgroup-timestamp": when})
        cluster.podgroups[0] = replace(cluster.podgroups[0], meta=meta)
    return cluster


@pytest.mark.parametrize(
    "stale_for, grace, evicted",
    [
        pytest.param(61, None, True, id="grace is over"),
        pytest.param(60, None, True, id="grace ends now"),
        pytest.param(1, None, False, id="within grace"),
        pytest.param(None, None, False, id="found stale for the first time"),
        pytest.param(None, 0, True, id="no grace at all"),
        pytest.param(30, 10, True, id="own shorter grace"),
        pytest.param(61, 120, False, id="own longer grace"),
        pytest.param(600, -1, False, id="never"),
    ],
)
def test_a_stale_gang_is_removed_after_its_grace(
    *, stale_for: float | None, grace: float | None, evicted: bool
) -> None:
    result = _broken_gang(stale_for, grace=grace).run("stalegangeviction")
    assert outcome(result, "g") == ("evicted" if evicted else "kept")


def test_the_shard_can_forbid_it() -> None:
    cluster = _broken_gang(600)
    cluster.params(staleness_grace=-1.0)
    assert outcome(cluster.run("stalegangeviction"), "g") == "kept"


def test_a_finished_pod_keeps_the_gang() -> None:
    assert outcome(_broken_gang(600, other="Succeeded").run("stalegangeviction"), "g") == "kept"


def test_every_pod_of_a_gang_goes_for_one_broken_subgroup() -> None:
    cluster = Cluster()
    cluster.node("n0", 4)
    specs = (SubGroupSpec("a", min_member=2), SubGroupSpec("b", min_member=1))
    cluster.gang("g", 0, sub_groups=specs, group={"staleness_grace": 0})
    for index in range(3):
        cluster.pod("g", index, on="n0", sub_group="a")
    cluster.pod("g", 0, on="n0", sub_group="b", status="Failed")
    result = cluster.run("stalegangeviction")
    assert counts(result, "g") == {"evicted": 3, "kept": 1}


def test_a_legal_choice_of_subgroups_is_stale_all_the_same() -> None:
    """The scheduler ignores minSubGroup here: one of two optional subgroups running counts as broken."""
    cluster = Cluster()
    cluster.node("n0", 4)
    specs = (SubGroupSpec("a", min_member=1), SubGroupSpec("b", min_member=1))
    cluster.gang("g", 0, sub_groups=specs, min_sub_group=1, group={"staleness_grace": 0})
    cluster.pod("g", 0, on="n0", sub_group="a")
    assert outcome(cluster.run("stalegangeviction"), "g") == "evicted"


def test_a_gang_of_a_missing_queue_is_removed_too() -> None:
    cluster = _broken_gang(61)
    cluster.podgroups[0] = replace(cluster.podgroups[0], queue="gone")
    assert outcome(cluster.run("stalegangeviction"), "g") == "evicted"


def test_terminating_pods_still_make_up_the_minimum() -> None:
    cluster = Cluster()
    cluster.node("n0", 2)
    cluster.gang("g", 0, group={"min_member": 2, "staleness_grace": 0})
    cluster.pod("g", 0, on="n0")
    cluster.pod("g", 1, on="n0", deleted=10)
    assert outcome(cluster.run("stalegangeviction"), "g") == "kept"
