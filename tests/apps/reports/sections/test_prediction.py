"""Estimates from past runs: exact against all outcomes, silent without history, honest about how they turned out."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.clusters.models import Cluster
from apps.diagnosis.models import ExplanationRecord, ReasonTimeline, Snapshot
from apps.reports.build import build_content
from apps.reports.content import Content
from apps.reports.prediction import Calibration, Estimate, HolderRun, NoEstimate, calibrate, estimate
from apps.workloads.models import Attempt, Gang
from tests.apps.reports.sections.build import END, section

HOUR = 3600.0


def test_one_holder_ends_like_its_like() -> None:
    holder = HolderRun(gpus=8, age=2 * HOUR, runs=(HOUR, 3 * HOUR, 4 * HOUR, 6 * HOUR, 12 * HOUR))
    # Of those that became two hours old, the others ran 1, 2, 4 and 10 hours more.
    assert estimate(8, [holder]) == Estimate(p50=2 * HOUR, p90=10 * HOUR)


def test_without_history_there_is_no_estimate() -> None:
    known, fresh = HolderRun(4, 0, (HOUR,)), HolderRun(8, 0, ())
    outlived = HolderRun(8, 5 * HOUR, (HOUR,))
    assert estimate(8, [known, fresh, outlived]) == NoEstimate(without=2, holders=3)
    assert estimate(4, [known, fresh]) == Estimate(HOUR, HOUR)
    assert estimate(8, []) == NoEstimate(0, 0)


runs = st.lists(st.integers(1, 20).map(float), min_size=1, max_size=3).map(tuple)
holders = st.lists(st.builds(HolderRun, st.sampled_from((1.0, 2.0, 4.0)), st.just(0.0), runs), min_size=1, max_size=4)


@given(holders, st.sampled_from((1.0, 3.0, 4.0, 6.0)))
def test_the_estimate_is_the_quantile_over_all_outcomes(found: list[HolderRun], short: float) -> None:
    """Count every combination of past runs as one outcome and take the moment of each."""
    told = estimate(short, found)
    if sum(holder.gpus for holder in found) < short:
        assert told == NoEstimate(0, len(found))
        return
    moments = []
    for ends in itertools.product(*(holder.runs for holder in found)):
        freed = 0.0
        for end, gpus in sorted(zip(ends, (holder.gpus for holder in found), strict=True)):
            freed += gpus
            if freed >= short:
                moments.append(end)
                break
    moments.sort()
    weights = len(moments)
    p50 = next(moment for at, moment in enumerate(moments, 1) if at / weights >= 0.5 - 1e-9)
    p90 = next(moment for at, moment in enumerate(moments, 1) if at / weights >= 0.9 - 1e-9)
    assert told == Estimate(p50, p90)


def test_past_estimates_are_held_against_what_came() -> None:
    pairs: list[tuple[Estimate | NoEstimate, float]]
    pairs = [(Estimate(10, 20), 5.0), (Estimate(10, 20), 15.0), (Estimate(10, 20), 40.0), (NoEstimate(1, 1), 3.0)]
    found = calibrate(pairs)
    assert (found.cases, found.estimated) == (4, 3)
    assert found.within_p50 == pytest.approx(1 / 3)
    assert found.within_p90 == pytest.approx(2 / 3)
    assert found.median_error == 5
    assert calibrate([(NoEstimate(1, 1), 3.0)]) == Calibration(1, 0)


def ran(cluster: Cluster, name: str, lineage: str, *, hours: float, ended: float | None, evictions: int = 0) -> None:
    """Store a gang that had nodes for some hours and ended so many hours ago; without an end it holds them now."""
    until = END - timedelta(hours=ended or 0)
    gang = Gang.objects.create(cluster=cluster, uid=name, namespace="team", name=name, queue="q", gpus=8,
                               first_seen_at=until, last_seen_at=until)  # fmt: skip
    times = {"bound_at": until - timedelta(hours=hours), "ended_at": None if ended is None else until}
    Attempt.objects.create(cluster=cluster, gang=gang, lineage=lineage, seen_at=until, evictions=evictions, **times)


def waits(cluster: Cluster, name: str, *, told: dict[str, Any], ago: float, bound: float | None = None) -> None:
    """Store a gang that has waited since so many hours ago, with what was said then; ``bound`` hours ago it started."""
    at = END - timedelta(hours=ago)
    gang = Gang.objects.create(cluster=cluster, uid=name, namespace="team", name=name, queue="q", gpus=8,
                               first_seen_at=at, last_seen_at=END, waiting_since=at)  # fmt: skip
    until = None if bound is None else END - timedelta(hours=bound)
    Attempt.objects.create(cluster=cluster, gang=gang, lineage=name, seen_at=at, created_at=at, bound_at=until)
    snapshot, _ = Snapshot.objects.get_or_create(cluster=cluster, as_of=at, engine="1.0.0",
                                                 defaults={"started_at": at, "outcome": "done"})  # fmt: skip
    words = {"verdict": "NO_FIT", "code": "GPUS_BUSY", "who": "wait", "sentence": "-"}
    ReasonTimeline.objects.create(gang=gang, state="waits", gpus=8, opened_at=at, closed_at=until, **words)
    document = {"certainty": "proved", "scheduler": {"text": None, "at": None, "match": "agree"}} | told
    ExplanationRecord.objects.create(snapshot=snapshot, gang=gang, opens_timeline=True, certainty="proved",
                                     document=msgspec.json.encode(document).decode(), **words)  # fmt: skip


def told_of(*holders: str, need: float = 16, have: float = 8) -> dict[str, Any]:
    return {
        "binding": [{"id": "cluster.gpu", "scope": "", "need": need, "have": have, "unit": "gpu", "source": "-"}],
        "holders": [{"gang": f"team/{name}", "gpus": 8, "evictable": "no"} for name in holders],
    }


def report(cluster: Cluster) -> Content:
    return build_content(cluster, start=END - timedelta(days=7), end=END, now=END)


@pytest.mark.django_db
def test_a_report_estimates_from_the_runs_of_the_same_work() -> None:
    cluster = Cluster.objects.create(name="fjord-1", source="folder")
    for number, hours in enumerate((1, 3, 4, 6, 12)):
        ran(cluster, f"train-{number}", "train", hours=hours, ended=20)
    for number in range(3):
        ran(cluster, f"cut-short-{number}", "train", hours=2.5, ended=20, evictions=1)
    ran(cluster, "train-now", "train", hours=2, ended=None)
    ran(cluster, "stranger", "other", hours=2, ended=None)
    waits(cluster, "hopeful", told=told_of("train-now"), ago=1)
    waits(cluster, "lost", told=told_of("gone-or-never-seen"), ago=1)
    part = section(report(cluster), "prediction")
    rows = {row[0].text: [cell.text for cell in row[2:]] for row in part.tables[0].rows}
    assert rows == {
        "team/hopeful": ["2\u00a0h", "10\u00a0h", "from its holders' past runs"],
        "team/lost": ["\u2014", "\u2014", "no estimate: 1 holder has no history"],
    }
    assert part.sentences == ("No estimate of this time can be compared with what came.",)


@pytest.mark.django_db
def test_the_runs_of_a_namespace_count_once_there_are_enough() -> None:
    cluster = Cluster.objects.create(name="fjord-1", source="folder")
    for number in range(4):
        ran(cluster, f"job-{number}", f"job-{number}", hours=4, ended=20)
    ran(cluster, "new-job", "new-job", hours=1, ended=None)
    waits(cluster, "hopeful", told=told_of("new-job"), ago=1)
    assert "no estimate" in section(report(cluster), "prediction").tables[0].rows[0][4].text
    ran(cluster, "job-4", "job-4", hours=4, ended=20)
    assert section(report(cluster), "prediction").tables[0].rows[0][2].value == 3 * HOUR


@pytest.mark.django_db
def test_a_report_says_how_its_estimates_turned_out() -> None:
    cluster = Cluster.objects.create(name="fjord-1", source="folder")
    for number in range(5):
        ran(cluster, f"train-{number}", "train", hours=4, ended=100)
    # Thirty hours ago the holder was an hour old, so three hours were left; it took two and five.
    ran(cluster, "held", "train", hours=21, ended=10)
    waits(cluster, "sooner", told=told_of("held"), ago=30, bound=28)
    waits(cluster, "later", told=told_of("held"), ago=30, bound=25)
    content = report(cluster)
    [sentence] = section(content, "prediction").sentences
    assert sentence.startswith(
        "Of 2\u00a0estimates, 50\u00a0% started by the even moment and 50\u00a0% by the late one"
    )
    assert sentence.endswith("the middle error was 90\u00a0min.")
    figure = content.figure("prediction", "estimated")
    assert figure is not None
    assert figure.text == "2 of 2"
