"""Reports on nothing, on parts, on hostile names: unset, zero and not read stay apart; each number leads somewhere."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext, override_settings
from django.urls import resolve

from apps.accounts.models import User
from apps.clusters.models import Cluster, PollRun
from apps.diagnosis.models import ExplanationRecord, ReasonTimeline, Snapshot
from apps.inventory.models import CapacitySample, Queue
from apps.reports.build import build_content
from apps.reports.content import Content, Known
from apps.workloads.models import Attempt, Gang, ServiceObjective
from tests.apps.reports.sections.build import END, all_text, section
from tests.apps.reports.sections.week import END as WEEK_END
from tests.apps.reports.sections.week import START, simulate, store

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


NOTHING = (
    "No gang waited at",
    "No capacity was sampled",
    "No queue was read.",
    "No gang was evicted.",
    "No state of a node is known.",
    "No record of a reading is kept",
    "no Prometheus is connected",
)
UNSET = (
    ("data", "gaps"),
    ("data", "polls"),
    ("hardware", "ready"),
    ("hardware", "held"),
    ("slo", "share"),
    ("slo", "budget_left"),
    ("fit", "free_gpus"),
    ("queues", "exposed"),
)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster.objects.create(name="fjord-1", source="folder")


def report(cluster: Cluster, *, previous: Content | None = None, zone: str = "UTC") -> Content:
    return build_content(cluster, start=END - DAY, end=END, now=END, previous=previous, zone=zone)


def test_nothing_at_all_is_said_in_every_section(cluster: Cluster) -> None:
    content = report(cluster)
    assert content.headline == ("Nothing of fjord-1 was analysed up to 30 Nov 2026 08:00 UTC.",)
    assert content.as_of is None
    assert [part.number for part in content.sections] == list(range(1, 13))
    for part in content.sections:
        assert part.sentences, part.key
        for table in part.tables:
            assert table.rows or table.empty, (part.key, table.key)
    text = all_text(content)
    for words in NOTHING:
        assert words in text, words


def test_without_a_record_nothing_is_zero_that_was_not_counted(cluster: Cluster) -> None:
    content = report(cluster)
    for part, key in UNSET:
        figure = content.figure(part, key)
        assert figure is not None
        assert (figure.value, figure.known) == (None, Known.UNSET), (part, key)
    for part, key in (("hardware", "idle"), ("hardware", "use"), ("scheduler", "cycle_median")):
        figure = content.figure(part, key)
        assert figure is not None
        assert (figure.value, figure.known, figure.text) == (None, Known.NOT_READ, "not read"), (part, key)


def test_a_quiet_day_has_zeros_and_no_gaps(cluster: Cluster) -> None:
    Snapshot.objects.create(cluster=cluster, as_of=END, engine="1.0.0", started_at=END, outcome="done")
    Queue.objects.create(cluster=cluster, name="q", gpu_quota=8, gpu_limit=8, fingerprint="-")
    CapacitySample.objects.create(
        cluster=cluster, at=END - 2 * DAY, queues={"q": [0, 8]}, domains={"": [16, 16, 0, 2, 2]}
    )
    PollRun.objects.bulk_create(
        PollRun(cluster=cluster, started_at=at, ended_at=at, outcome="read", kinds=[{"kind": "Pod", "reason": ""}])
        for at in (END - DAY + timedelta(seconds=30 * number) for number in range(2880))
    )
    content = report(cluster)
    assert content.headline[0] == "No gang waited at 30 Nov 2026 08:00 UTC."
    assert section(content, "data").sentences == ("The data has no gaps.",)
    gaps = content.figure("data", "gaps")
    assert gaps is not None
    assert (gaps.value, gaps.known) == (0, Known.VALUE)
    idle = content.figure("queues", "idle")
    assert idle is not None
    assert idle.value == 8 * 24
    assert [table.empty for table in section(content, "data").tables if table.key == "kinds"] == [
        "Every kind was read."
    ]


def test_a_queue_whose_amount_is_not_known_is_not_taken_for_empty(cluster: Cluster) -> None:
    Queue.objects.create(cluster=cluster, name="known", gpu_quota=8, gpu_limit=-1, fingerprint="-")
    Queue.objects.create(cluster=cluster, name="unknown", gpu_quota=8, gpu_limit=-1, fingerprint="-")
    CapacitySample.objects.create(cluster=cluster, at=END - 2 * DAY, domains={"": [8, 8, 0]},
                                  queues={"known": [2, None], "unknown": [None, None]})  # fmt: skip
    content = report(cluster)
    [_, queues] = section(content, "queues").tables
    assert [row[0].text for row in queues.rows] == ["known"]
    idle = content.figure("queues", "idle")
    assert idle is not None
    assert idle.value == 6 * 24


def test_what_is_held_over_quota_at_the_end_is_open_to_reclaim(cluster: Cluster) -> None:
    for name, quota in (("over", 8), ("under", 8), ("free", -1)):
        Queue.objects.create(cluster=cluster, name=name, gpu_quota=quota, gpu_limit=-1, fingerprint="-")
    CapacitySample.objects.create(cluster=cluster, at=END - 2 * DAY, domains={"": [99, 0, 0]},
                                  queues={"over": [11, None], "under": [1, None], "free": [50, None]})  # fmt: skip
    exposed = report(cluster).figure("queues", "exposed")
    assert exposed is not None
    assert exposed.value == 3


def test_samples_of_before_nodes_were_counted_say_at_most(cluster: Cluster) -> None:
    from apps.inventory.models import Node

    Node.objects.create(cluster=cluster, name="n", state="ready", gpus=8, fingerprint="-")
    CapacitySample.objects.create(cluster=cluster, at=END - 2 * DAY, domains={"": [32, 20, 0]})
    part = section(report(cluster), "fit")
    assert [row[2].value for row in part.tables[0].rows] == [2, 1, 0, 0, 0]
    assert [row[3].known for row in part.tables[0].rows] == [Known.UNSET] * 5
    assert any("the most that the free GPUs could hold" in note for note in part.notes)
    assert "No sample of a week ago is kept." in part.notes


def test_a_kind_that_could_not_be_read_is_named_with_its_span(cluster: Cluster) -> None:
    for number in range(4):
        at = END - timedelta(hours=4 - number)
        kinds = [{"kind": "ResourceClaim", "reason": "403" if number in {1, 2} else ""}]
        PollRun.objects.create(cluster=cluster, started_at=at, ended_at=at, outcome="partial", kinds=kinds)
    content = report(cluster)
    [kinds_table] = [table for table in section(content, "data").tables if table.key == "kinds"]
    assert [[cell.text for cell in row] for row in kinds_table.rows] == [
        ["ResourceClaim", "403", "30 Nov 2026 05:00 UTC", "30 Nov 2026 06:00 UTC", "2"]
    ]
    assert content.not_read[0].what == "ResourceClaim"
    assert "reach back to 30 Nov 2026 04:00 UTC" in "".join(section(content, "data").notes)


def test_a_report_is_compared_with_the_one_before(cluster: Cluster) -> None:
    Snapshot.objects.create(cluster=cluster, as_of=END - 2 * DAY, engine="1.0.0", started_at=END, outcome="done")
    before = build_content(cluster, start=END - 2 * DAY, end=END - DAY, now=END)
    gang = Gang.objects.create(cluster=cluster, uid="g", namespace="a", name="g", gpus=4, waiting_since=END - 0.5 * DAY,
                               first_seen_at=END - DAY, last_seen_at=END)  # fmt: skip
    ReasonTimeline.objects.create(gang=gang, verdict="NO_FIT", code="GPUS_BUSY", who="wait", state="waits", gpus=4,
                                  sentence="Needs 4 GPUs.", opened_at=END - 0.5 * DAY)  # fmt: skip
    content = report(cluster, previous=before)
    figure = content.figure("headline", "gpu_hours")
    assert figure is not None
    assert (figure.value, figure.before) == (48, 0)
    assert content.headline[0] == "1\u00a0gang waits for 4\u00a0GPUs, the oldest for 12\u00a0h: Needs 4 GPUs."
    assert content.headline[3] == (
        "Against the report of 29 Nov 2026 08:00 UTC: waiting gangs 1 (was 0), waiting GPUs 4\u00a0GPUs "
        "(was 0\u00a0GPUs), GPU-hours waited 48\u00a0GPU-hours (was 0\u00a0GPU-hours), started in time \u2014 "
        "(was \u2014), evictions 0 (was 0)."
    )


def test_what_comes_after_now_is_not_in_the_report(cluster: Cluster) -> None:
    content = build_content(cluster, start=END - DAY, end=END + DAY, now=END)
    assert content.end == END


def test_time_before_the_history_begins_is_named(cluster: Cluster) -> None:
    Cluster.objects.filter(pk=cluster.pk).update(added_at=END - timedelta(hours=5))
    cluster.refresh_from_db()
    content = report(cluster)
    assert (
        "History reaches back to 30 Nov 2026 03:00 UTC; the time before is not in the sums."
        in section(content, "data").notes
    )
    assert any("what is since 30 Nov 2026 03:00 UTC is known" in note for note in section(content, "slo").notes)
    before = content.figure("why", "before")
    assert before is not None
    assert before.known is Known.UNSET
    assert "so there is no trend" in "".join(section(content, "why").notes)


def test_one_change_is_asked_for_once_and_the_widest_first(cluster: Cluster) -> None:
    snapshot = Snapshot.objects.create(cluster=cluster, as_of=END, engine="1.0.0", started_at=END, outcome="done")
    limit, name = ("queue_admin", "Raise the limit of q."), ("owner", "Set the queue to q.")
    for number, (gpus, fix) in enumerate(((8, limit), (12, name), (8, limit), (64, None))):
        gang = Gang.objects.create(cluster=cluster, uid=f"g{number}", namespace="a", name=f"g{number}", gpus=gpus,
                                   first_seen_at=END - DAY, last_seen_at=END)  # fmt: skip
        told = {"verdict": "POLICY", "code": "QUEUE_LIMIT", "who": "queue_admin", "sentence": "Queue q is full."}
        ReasonTimeline.objects.create(gang=gang, state="waits", gpus=gpus, opened_at=END - DAY, **told)
        fixes = [
            {"change": {"kind": "raise_limit"}, "sentence": fix[1], "verified": True, "starts": [], "moves": [],
             "delays": [], "sets_back": [], "evicts": [], "who": fix[0], "cost": 1}
        ] if fix else []  # fmt: skip
        document = {"certainty": "proved", "scheduler": {"text": None, "at": None, "match": "agree"}, "fixes": fixes}
        ExplanationRecord.objects.create(gang=gang, snapshot=snapshot, certainty="proved",
                                         document=msgspec.json.encode(document).decode(), **told)  # fmt: skip
    asks = section(report(cluster), "waiting").tables[1]
    assert [[cell.text for cell in row] for row in asks.rows] == [
        ["queue admin", "Raise the limit of q.", "2", "16"],
        ["owner", "Set the queue to q.", "1", "12"],
    ]


def test_the_headline_names_the_queue_whose_objective_it_tells(cluster: Cluster) -> None:
    Snapshot.objects.create(cluster=cluster, as_of=END, engine="1.0.0", started_at=END, outcome="done")
    ServiceObjective.objects.create(cluster=cluster, queue="batch", share=0.9)
    assert report(cluster).headline[1] == "No gang that counts for the objective of queue batch became eligible."


def test_what_ended_at_the_very_end_waits_no_more(cluster: Cluster) -> None:
    for name, closed in (("ended", END), ("later", END + timedelta(seconds=1))):
        gang = Gang.objects.create(cluster=cluster, uid=name, namespace="a", name=name, gpus=4, first_seen_at=END - DAY,
                                   last_seen_at=END)  # fmt: skip
        ReasonTimeline.objects.create(gang=gang, verdict="NO_FIT", code="GPUS_BUSY", who="wait", state="waits", gpus=4,
                                      sentence="-", opened_at=END - DAY, closed_at=closed)  # fmt: skip
    rows = section(report(cluster), "waiting").tables[0].rows
    assert [row[0].text for row in rows] == ["a/later"]


def test_a_budget_is_of_its_own_window_and_the_counts_are_of_the_report(cluster: Cluster) -> None:
    ServiceObjective.objects.create(cluster=cluster, window_days=1, share=0.5)
    for days in (0.5, 3):
        at = END - days * DAY
        gang = Gang.objects.create(cluster=cluster, uid=str(days), namespace="a", name=str(days), gpus=4,
                                   first_seen_at=at, last_seen_at=END)  # fmt: skip
        Attempt.objects.create(cluster=cluster, gang=gang, lineage=str(days), created_at=at, seen_at=at,
                               bound_at=at + timedelta(minutes=1 if days < 1 else 60))  # fmt: skip
    content = build_content(cluster, start=END - 7 * DAY, end=END, now=END)
    figures = {figure.key: figure.value for figure in section(content, "slo").figures}
    assert figures == {"met": 1, "total": 2, "share": 0.5, "budget_left": 1}
    sizes = section(content, "slo").tables[0]
    assert [cell.text for cell in sizes.rows[0]] == ["up to 8 GPUs", "1", "2", "50\u00a0%", "met"]


def test_moments_are_written_in_the_zone_of_the_report(cluster: Cluster) -> None:
    assert report(cluster, zone="Europe/Berlin").headline[0].endswith("30 Nov 2026 09:00 CET.")


def test_names_that_want_to_break_out_stay_on_one_line(cluster: Cluster) -> None:
    name = "evil\n\x1b[2J\u202e<script>" + "x" * 200
    gang = Gang.objects.create(cluster=cluster, uid="g", namespace="a", name=name, gpus=4, queue=name,
                               waiting_since=END - DAY, first_seen_at=END - 2 * DAY, last_seen_at=END)  # fmt: skip
    ReasonTimeline.objects.create(gang=gang, verdict="NO_FIT", code="GPUS_BUSY", who="wait", state="waits", gpus=4,
                                  sentence=f"Needs {name[:100]}", opened_at=END - DAY)  # fmt: skip
    Queue.objects.create(cluster=cluster, name=name, gpu_quota=8, gpu_limit=-1, fingerprint="-")
    CapacitySample.objects.create(cluster=cluster, at=END - 2 * DAY, queues={name: [2, None]}, domains={"": [8, 8, 0]})
    content = report(cluster)
    pieces = [cell.text for part in content.sections for table in part.tables for row in table.rows for cell in row]
    pieces += [sentence for part in content.sections for sentence in part.sentences]
    assert any("evil" in piece for piece in pieces)
    for piece in pieces:
        assert piece.replace("\u00a0", " ").isprintable(), ascii(piece)


def test_codes_and_states_of_another_version_are_shown_as_they_are(cluster: Cluster) -> None:
    gang = Gang.objects.create(cluster=cluster, uid="g", namespace="a", name="g", gpus=4, waiting_since=END - DAY,
                               first_seen_at=END - 2 * DAY, last_seen_at=END)  # fmt: skip
    ReasonTimeline.objects.create(gang=gang, verdict="PONDERING", code="TEA_BREAK", who="wait", state="waits", gpus=4,
                                  sentence="-", opened_at=END - DAY)  # fmt: skip
    content = report(cluster)
    assert (
        content.headline[2] == "PONDERING cost most: 96 of 96\u00a0GPU-hours waited, and all of those under TEA_BREAK."
    )
    assert [row[0].text for row in section(content, "why").tables[0].rows] == ["Unproven"]


@override_settings(GANGDASH_POLL_SECONDS=60)
def test_every_number_leads_to_a_page_that_is_there(client: Client, alice: User) -> None:
    content = build_content(store(simulate(3, gangs=12)), start=START, end=WEEK_END, now=WEEK_END)
    found: set[str] = set()
    for part in content.sections:
        for figure in part.figures:
            assert figure.link, (part.key, figure.key)
            found.add(figure.link)
        for table in part.tables:
            for row in table.rows:
                assert any(cell.link for cell in row), (part.key, table.key)
                found |= {cell.link for cell in row if cell.link}
    client.force_login(alice)
    pages = {(resolve(link.partition("?")[0]).view_name, link.count("=")): link for link in sorted(found)}
    assert len({page for page, _ in pages}) >= 6
    for link in pages.values():
        assert client.get(link).status_code == 200, link
    assert any("at=2026-11-23T08%3A00%3A00Z" in link for link in found)


def test_a_report_asks_the_same_few_questions_however_many_gangs_there_are() -> None:
    counts = []
    for number, gangs in enumerate((10, 40)):
        cluster = store(simulate(number, gangs=gangs), name=f"c{number}")
        with (
            CaptureQueriesContext(
                connection,
            ) as queries,
            override_settings(GANGDASH_POLL_SECONDS=60),
        ):
            build_content(cluster, start=START, end=WEEK_END, now=WEEK_END)
        counts.append(len(queries))
    assert counts[0] == counts[1]
    assert counts[0] < 90
