"""Service objectives: which starts count, how each is judged, what is left of the budget, and how one is set."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from apps.accounts.models import AuditEntry
from apps.clusters.models import Cluster
from apps.diagnosis.models import ReasonTimeline
from apps.errors import ApplicationError
from apps.inventory.models import CapacitySample, Queue
from apps.workloads.models import Attempt, Gang, ServiceObjective
from apps.workloads.objectives import Outcome, objective_list, objective_standing, starts_judged
from apps.workloads.services import ObjectiveTerms, objective_set

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
DAY = timedelta(days=1)


def minutes(count: float) -> timedelta:
    return timedelta(minutes=count)


@pytest.fixture
def cluster() -> Cluster:
    """Return a cluster with one queue of 16 GPUs that has held 8 for days."""
    east = Cluster.objects.create(name="east", source="folder")
    Queue.objects.create(cluster=east, name="q", gpu_quota=16, fingerprint="-")
    Queue.objects.create(cluster=east, name="free", gpu_quota=-1, parent="top", fingerprint="-")
    Queue.objects.create(cluster=east, name="top", gpu_quota=None, fingerprint="-")
    CapacitySample.objects.create(cluster=east, at=NOW - 3 * DAY, queues={"q": [8, 16], "free": [4000, -1]})
    return east


def start(cluster: Cluster, name: str, *, ago: timedelta, after: timedelta | None, **more: Any) -> Gang:
    """Store a gang that was made so long before now and was bound so long after that, if ever."""
    codes = more.pop("codes", ())
    attempt = {"created_at": NOW - ago, "seen_at": NOW - ago, "bound_at": None if after is None else NOW - ago + after}
    attempt |= more.pop("attempt", {})
    fields = {"queue": "q", "gpus": 8, "first_seen_at": NOW - ago, "last_seen_at": NOW} | more
    gang = Gang.objects.create(cluster=cluster, uid=name, namespace="team-a", name=name, **fields)
    Attempt.objects.create(cluster=cluster, gang=gang, lineage=name, **attempt)
    for number, (code, at) in enumerate(codes):
        ReasonTimeline.objects.create(
            gang=gang, verdict="-", code=code, who="-", state="waits", sentence="", opened_at=at,
            closed_at=at + minutes(1) if number + 1 < len(codes) else None,
        )  # fmt: skip
    return gang


def judged(cluster: Cluster, **terms: Any) -> dict[str, str]:
    objective = ServiceObjective(cluster=cluster, **terms)
    names = dict(Gang.objects.values_list("pk", "name"))
    return {names[item.start.gang_id]: str(item.outcome)
            for item in starts_judged(objective=objective, start=NOW - DAY, end=NOW)}  # fmt: skip


def test_a_start_counts_by_when_it_was_bound(cluster: Cluster) -> None:
    start(cluster, "in time", ago=minutes(60), after=minutes(10))
    start(cluster, "late", ago=minutes(60), after=minutes(10.1))
    start(cluster, "never", ago=minutes(60), after=None)
    start(cluster, "not yet", ago=minutes(9), after=None)
    start(cluster, "given up", ago=minutes(60), after=None, attempt={"ended_at": NOW - minutes(55)})
    start(cluster, "given up late", ago=minutes(60), after=None, attempt={"ended_at": NOW - minutes(5)})
    start(cluster, "day before", ago=DAY, after=None)
    assert judged(cluster) == {
        "in time": Outcome.MET,
        "late": Outcome.MISSED,
        "never": Outcome.MISSED,
        "not yet": Outcome.UNDECIDED,
        "given up": Outcome.UNDECIDED,
        "given up late": Outcome.MISSED,
    }


def test_the_clock_starts_once_gates_are_removed(cluster: Cluster) -> None:
    opened = {"gated_at": NOW - minutes(60), "gates_removed_at": NOW - minutes(30), "bound_at": NOW - minutes(25)}
    start(cluster, "gated an hour", ago=minutes(60), after=None, attempt=opened)
    start(cluster, "still gated", ago=minutes(60), after=None, attempt={"gated_at": NOW - minutes(60)})
    assert judged(cluster) == {"gated an hour": Outcome.MET}


def test_work_over_quota_and_what_never_fits_do_not_count(cluster: Cluster) -> None:
    soon = NOW - minutes(58)
    start(cluster, "over by samples", ago=minutes(60), after=None, gpus=9)
    start(cluster, "at quota", ago=minutes(60), after=None, gpus=8)
    start(cluster, "no end of quota", ago=minutes(60), after=None, queue="free", gpus=60)
    start(cluster, "over by code", ago=minutes(60), after=None, codes=[("QUEUE_LIMIT", soon)])
    start(cluster, "over too late", ago=minutes(60), after=None, codes=[("QUEUE_LIMIT", NOW - minutes(20))])
    never = [("GPUS_BUSY", soon), ("DOMAIN_TOO_SMALL", soon + minutes(1))]
    start(cluster, "never fits", ago=minutes(60), after=None, codes=never)
    start(cluster, "too large", ago=minutes(60), after=minutes(1), gpus=65)
    start(cluster, "no size", ago=minutes(60), after=minutes(1), gpus=None)
    assert judged(cluster) == {
        "over by samples": Outcome.OVER_QUOTA,
        "at quota": Outcome.MISSED,
        "no end of quota": Outcome.MISSED,
        "over by code": Outcome.OVER_QUOTA,
        "over too late": Outcome.MISSED,
        "never fits": Outcome.NEVER_FITS,
        "too large": Outcome.TOO_LARGE,
        "no size": Outcome.SIZE_UNKNOWN,
    }


def test_a_quota_that_is_not_set_is_none_and_one_that_is_not_known_is_said(cluster: Cluster) -> None:
    CapacitySample.objects.create(cluster=cluster, at=NOW - 2 * DAY, queues={"q": [None, None], "top": [0, 0]})
    start(cluster, "nothing known", ago=minutes(60), after=None)
    start(cluster, "no such queue", ago=minutes(60), after=minutes(1), queue="gone")
    start(cluster, "quota of nothing", ago=minutes(60), after=minutes(1), queue="top")
    standing = objective_standing(objective=objective_list(cluster_id=cluster.pk)[0], now=NOW)
    assert (standing.met, standing.missed, standing.over_quota, standing.quota_unknown) == (1, 1, 1, 2)


def test_what_came_after_the_moment_has_not_happened(cluster: Cluster) -> None:
    start(cluster, "a", ago=minutes(60), after=minutes(5))
    objective = objective_list(cluster_id=cluster.pk)[0]
    assert objective_standing(objective=objective, now=NOW - minutes(57)).undecided == 1
    assert objective_standing(objective=objective, now=NOW - minutes(55)).met == 1
    assert objective_standing(objective=objective, now=NOW - minutes(61)).total == 0


def test_burn_and_budget_follow_from_the_counts(cluster: Cluster) -> None:
    for number in range(38):
        start(cluster, f"met-{number}", ago=minutes(600), after=minutes(1))
    for number in range(2):
        start(cluster, f"missed-{number}", ago=minutes(60), after=None)
    objective = ServiceObjective(cluster=cluster, share=0.9)
    standing = objective_standing(objective=objective, now=NOW)
    assert (standing.met, standing.missed, standing.share) == (38, 2, 0.95)
    assert standing.burn == pytest.approx(0.5)
    assert standing.budget_left == pytest.approx(0.5)
    recent = objective_standing(objective=objective, now=NOW, window=timedelta(hours=2))
    assert recent.total == 2
    assert recent.burn == pytest.approx(10)
    assert recent.budget_left == pytest.approx(-9)


def test_nothing_that_counts_is_no_share_rather_than_a_full_or_an_empty_one(cluster: Cluster) -> None:
    standing = objective_standing(objective=objective_list(cluster_id=cluster.pk)[0], now=NOW)
    assert (standing.share, standing.burn, standing.budget_left) == (None, None, None)


def test_a_queues_objective_covers_the_queues_below_it(cluster: Cluster) -> None:
    Queue.objects.filter(name="top").update(parent="free")
    start(cluster, "below", ago=minutes(60), after=minutes(1), queue="free")
    start(cluster, "beside", ago=minutes(60), after=minutes(1))
    assert judged(cluster, queue="top") == {"below": Outcome.MET}


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("objective", "--cluster", "east", *arguments, stdout=out)
    return out.getvalue()


def test_the_command_sets_shows_and_takes_back(cluster: Cluster) -> None:
    assert "all queues: 95.00% of gangs up to 64 GPUs within 10 min over 28 days (default)" in run()
    assert "q: 90.00% of gangs up to 8 GPUs within 2 h over 7 days: 0 of 0 met, no start counted yet" in run(
        "--queue", "q", "--share", "0.9", "--max-gpus", "8", "--within", "2h", "--days", "7"
    )
    run("--queue", "q", "--share", "0.99")
    assert [row.share for row in ServiceObjective.objects.all()] == [0.99]
    assert "(default)" in run("--queue", "q", "--remove")
    assert list(AuditEntry.objects.order_by("pk").values_list("action", "target")) == [
        ("objective.set", "east q"), ("objective.set", "east q"), ("objective.remove", "east q"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("--share", "1"), "share"),
        (("--within", "ten"), "is no span"),
        (("--days", "0"), "window_days"),
        (("--max-gpus", "-1"), "gpus_max"),
        (("--remove",), "Nothing is set"),
        (("--cluster", "west"), "no cluster"),
    ],
)
def test_the_command_refuses_what_makes_no_promise(cluster: Cluster, arguments: tuple[str, ...], words: str) -> None:
    with pytest.raises(CommandError, match=words):
        run(*arguments)
    assert not ServiceObjective.objects.exists()


def test_terms_that_leave_no_budget_are_refused(cluster: Cluster) -> None:
    with pytest.raises(ApplicationError, match="share"):
        objective_set(cluster=cluster, terms=ObjectiveTerms(share=1.0))
