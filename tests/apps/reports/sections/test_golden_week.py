"""The report of a simulated week against what is right of it, counted minute by minute without the store."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from django.test import override_settings
from pytest_django import DjangoDbBlocker

from apps.clusters.models import Cluster
from apps.reports.build import Facts, build_content, facts_read
from apps.reports.content import Content, content_decode, content_encode
from apps.reports.facts.period import Period
from tests.apps.reports.sections import truth
from tests.apps.reports.sections.week import END, MINUTES, QUEUES, START, SimGang, Week, at, simulate, store

pytestmark = pytest.mark.django_db
SEEDS = (20261130, 7)


@pytest.fixture(scope="module", params=SEEDS)
def told(request: Any, django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> tuple[Week, Facts, Content]:
    """Return the week, what was read of it, and its report; read once for all the tests."""
    from django.db import transaction

    week = simulate(request.param)
    with django_db_blocker.unblock(), override_settings(GANGDASH_POLL_SECONDS=60), transaction.atomic():
        cluster = Cluster.objects.get(pk=store(week).pk)
        facts = facts_read(cluster, Period(cluster.name, cluster.pk, START, END, END))
        content = build_content(cluster, start=START, end=END, now=END)
        transaction.set_rollback(True)
    return week, facts, content


def test_gpu_hours_by_code_with_the_week_before(told: tuple[Week, Facts, Content]) -> None:
    week, facts, _ = told
    now, _, _ = truth.waited(week, 0, MINUTES)
    before, _, _ = truth.waited(week, -MINUTES, 0)
    assert {code.code: code.gpu_seconds / 60 for code in facts.waits.codes if code.gpu_seconds} == dict(now)
    assert {code.code: code.before / 60 for code in facts.waits.codes if code.before} == dict(before)


def test_levels_of_the_chart(told: tuple[Week, Facts, Content]) -> None:
    week, facts, content = told
    _, hours, _ = truth.waited(week, 0, MINUTES)
    assert {verdict: [round(level * 60, 6) for level in levels] for verdict, levels in facts.waits.levels.items()} == {
        verdict: [float(sum_) for sum_ in sums] for verdict, sums in hours.items()
    }
    section = content.section("why")
    assert section is not None
    [chart] = section.charts
    assert len(chart.labels) == MINUTES // 60
    assert {series.key for series in chart.series} == set(hours)


def test_who_waits_at_the_end_costliest_first(told: tuple[Week, Facts, Content]) -> None:
    week, facts, content = told
    right = truth.waiting(week)

    def cost(gang: SimGang) -> int:
        return gang.gpus * (MINUTES - truth.waits_since(gang))

    assert facts.waiting.total == len(right)
    assert {gang.gang.name for gang in facts.waiting.gangs} == {gang.name for gang in right}
    assert [gang.gpu_seconds(END) / 60 for gang in facts.waiting.gangs] == sorted(map(cost, right), reverse=True)
    section = content.section("waiting")
    assert section is not None
    table = section.tables[0]
    assert table.total == len(right)
    assert [row[3].value for row in table.rows] == [cost / 60 for cost in sorted(map(cost, right), reverse=True)][:10]
    figures = {figure.key: figure.value for figure in section.figures}
    assert figures == {"gangs": len(right), "gpus": sum(gang.gpus for gang in right)}


def test_evictions_and_what_they_cost(told: tuple[Week, Facts, Content]) -> None:
    week, facts, _ = told
    right = truth.evictions(week)
    assert facts.waits.evictions_total == len(right) > 5
    assert facts.waits.evicted_gangs == len({gang.name for gang, _, _ in right})
    assert facts.waits.evicted_gpu_seconds / 60 == sum(gang.gpus * held for gang, _, held in right)
    assert {(e.gang.name, e.at, e.run_seconds) for e in facts.waits.evictions} == {
        (gang.name, at(part.opened), held * 60) for gang, part, held in right
    }
    names = [gang.name for gang, _, _ in right]
    assert {gang.name: times for gang, times in facts.waits.churners} == {
        name: names.count(name) for name in names if names.count(name) > 1
    }


def test_flapping_gangs(told: tuple[Week, Facts, Content]) -> None:
    week, facts, _ = told
    right = {gang.name: most for gang in week.gangs if (most := truth.most_changes(gang)) >= 4}
    assert right
    assert facts.waits.flappers_total == len(right)
    assert {flapper.gang.name: flapper.changes for flapper in facts.waits.flappers} == right


def test_queues_and_pairs(told: tuple[Week, Facts, Content]) -> None:
    week, facts, _ = told
    _, _, demand = truth.waited(week, 0, MINUTES)
    sums, pairs = truth.queue_minutes(week, demand)
    for queue in facts.capacity.queues:
        if queue.name in sums:
            right = sums[queue.name]
            assert queue.at_limit_seconds / 60 == right["at limit"]
            assert queue.idle_gpu_seconds / 60 == right["idle"]
            assert queue.borrowed_gpu_seconds / 60 == right["borrowed"]
            assert queue.starved_seconds / 60 == right["starved"]
    assert {(pair.starved, pair.borrower): pair.seconds / 60 for pair in facts.capacity.pairs} == dict(pairs)
    assert pairs


def test_gpus_over_time(told: tuple[Week, Facts, Content]) -> None:
    week, facts, _ = told
    used = lost = 0
    for _, _, domains in truth.held_by_minute(week):
        gpus, free, away = domains[""][:3]
        used, lost = used + gpus - free - away, lost + away
    assert facts.capacity.used_gpu_seconds / 60 == pytest.approx(used)
    assert facts.capacity.lost_gpu_seconds / 60 == pytest.approx(lost)
    assert facts.capacity.known_seconds == MINUTES * 60


def test_what_fits_now_and_a_week_ago(told: tuple[Week, Facts, Content]) -> None:
    week, _, content = told
    section = content.section("fit")
    assert section is not None
    found = {
        (row[0].text, row[1].value): tuple(cell.value for cell in row[2:]) for t in section.tables for row in t.rows
    }
    now, before = week.samples[-1][2], [sample for sample in week.samples if sample[0] <= 0][-1][2]
    for size in (1, 2, 4, 8, 16):
        racks = [key for key in now if key]
        assert found["rack", size] == (
            sum(now[rack][4] // size for rack in racks),
            sum(before[rack][4] // size for rack in racks),
            sum((now[rack][0] - now[rack][2]) // 8 // size for rack in racks),
        )
        assert found["cluster", size][:2] == (now[""][4] // size, before[""][4] // size)


def test_nodes_that_were_away(told: tuple[Week, Facts, Content]) -> None:
    week, facts, _ = told
    away, states = truth.away_minutes(week)
    assert {outage.subject: outage.away_seconds / 60 for outage in facts.hardware.nodes} == {
        node: minutes for node, minutes in away.items() if minutes
    }
    assert facts.hardware.states == dict(states)
    inside = [change for change in week.changes if 0 <= change[1] < MINUTES]
    assert facts.hardware.lost == sum(was == "ready" for _, _, _, was in inside)
    assert facts.hardware.returned == sum(state == "ready" and was != "" for _, _, state, was in inside)


def test_gaps_and_kinds_not_read(told: tuple[Week, Facts, Content]) -> None:
    week, facts, _ = told
    quality = facts.quality
    good = [minute for minute, outcome, _ in week.polls if outcome != "failed"]
    assert (quality.good_polls, quality.all_polls) == (len(good), len(week.polls))
    # A gap is longer than three readings: from the last good one before it to the first after it.
    gaps = [(a, b) for a, b in itertools.pairwise(good) if b - a > 3]
    assert [(gap.start, gap.end, gap.reason) for gap in quality.gaps] == [(at(a), at(b), "refused") for a, b in gaps]
    assert len(gaps) == quality.gaps_total == 2
    [unread] = quality.unread
    assert (unread.kind, unread.polls, unread.first_at, unread.last_at) == ("ResourceClaim", 100, at(5000), at(5099))


def test_starts_in_time(told: tuple[Week, Facts, Content]) -> None:
    """Judge each start by hand: size, never-fitting codes, codes over quota, quota by the sample, then the clock."""
    week, facts, _ = told
    counts = dict.fromkeys(("met", "missed", "undecided", "over_quota", "never_fits", "too_large"), 0)
    for gang in week.gangs:
        if not 0 < gang.created <= MINUTES:
            continue
        deadline = gang.created + 10
        until = min(deadline, MINUTES)
        quota = QUEUES[gang.queue][0]
        held = [sample for sample in week.samples if sample[0] <= gang.created][-1][1][gang.queue]
        early = {part.code for part in gang.stretches if part.opened <= until}
        if gang.gpus > 64:
            counts["too_large"] += 1
        elif "DOMAIN_TOO_SMALL" in early:
            counts["never_fits"] += 1
        elif "QUEUE_LIMIT" in early or (quota >= 0 and held + gang.gpus > quota):
            counts["over_quota"] += 1
        elif gang.bound is not None and gang.bound <= until:
            counts["met"] += 1
        elif deadline > MINUTES or (gang.gone is not None and gang.gone <= deadline):
            counts["undecided"] += 1
        else:
            counts["missed"] += 1
    standing = facts.objectives[0].span
    assert {name: getattr(standing, name) for name in counts} == counts
    assert counts["met"]
    assert counts["missed"]


def test_the_headline_says_the_same_numbers(told: tuple[Week, Facts, Content]) -> None:
    week, facts, content = told
    right = truth.waiting(week)
    codes, _, _ = truth.waited(week, 0, MINUTES)
    first, second, third, change = content.headline
    assert first.startswith(f"{len(right)}\u00a0gangs wait for {sum(gang.gpus for gang in right):,}\u00a0GPUs, ")
    assert f" of {facts.objectives[0].span.total}\u00a0eligible gangs started within 10\u00a0min" in second
    assert f" of {round(sum(codes.values()) / 60):,}\u00a0GPU-hours waited" in third
    assert change == "There is no earlier report to compare with."


def test_a_report_goes_to_json_and_back(told: tuple[Week, Facts, Content]) -> None:
    _, _, content = told
    assert content_decode(content_encode(content)) == content
    assert [section.number for section in content.sections] == list(range(1, 13))
