"""What is right of the simulated week, counted minute by minute from its records; knows nothing of the store."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.apps.reports.sections.week import MINUTES, QUEUES, SimGang, Stretch, Week

HOUR = 60


def at_minute(gang: SimGang, minute: int) -> Stretch | None:
    """Return what was said of a gang in the minute that begins then."""
    for part in gang.stretches:
        if part.opened <= minute and (part.closed is None or minute < part.closed):
            return part
    return None


def waited(week: Week, first: int, last: int) -> tuple[Counter[str], dict[str, list[int]], dict[str, set[int]]]:
    """Return GPU-minutes by code, GPU-minutes by verdict and hour, and the hours in which queues had demand."""
    codes: Counter[str] = Counter()
    hours: dict[str, list[int]] = defaultdict(lambda: [0] * (MINUTES // HOUR))
    demand: dict[str, set[int]] = defaultdict(set)
    for gang in week.gangs:
        for minute in range(first, last):
            part = at_minute(gang, minute)
            if part is None or part.state != "waits":
                continue
            codes[part.code] += part.gpus
            if first >= 0:
                hours[part.verdict][minute // HOUR] += part.gpus
                if part.verdict not in {"CONFIG", "GATED"}:
                    demand[gang.queue].add(minute // HOUR)
    return codes, hours, demand


def waiting(week: Week) -> list[SimGang]:
    """Return who waits at the end."""
    return [gang for gang in week.gangs if (part := at_minute(gang, MINUTES)) and part.state == "waits"]


def waits_since(gang: SimGang) -> int:
    """Return the minute from which a gang has waited without a break until the end."""
    minute = MINUTES
    while (before := at_minute(gang, minute - 1)) and before.state == "waits":
        minute -= 1
    return minute


def evictions(week: Week) -> list[tuple[SimGang, Stretch, int]]:
    """Return the evictions of the week with the minutes that the gang had held its nodes."""
    found = []
    for gang in week.gangs:
        for part in gang.stretches:
            if part.verdict == "EVICTED" and 0 <= part.opened < MINUTES:
                minute, held = part.opened - 1, 0
                while (before := at_minute(gang, minute)) and before.state == "fine":
                    minute, held = minute - 1, held + 1
                found.append((gang, part, held))
    return found


def most_changes(gang: SimGang) -> int:
    """Return the most changes of the reason that half an hour of the week holds; the first reason is no change."""
    changes = [part.opened for part in gang.stretches[1:] if 0 <= part.opened < MINUTES]
    return max((sum(first <= other <= first + 30 for other in changes) for first in changes), default=0)


def held_by_minute(week: Week) -> Iterator[tuple[int, dict[str, int], dict[str, tuple[int, int, int, int, int]]]]:
    """Yield for each minute of the week the sample that was true in it."""
    samples = sorted(week.samples, key=lambda sample: sample[0])
    for minute in range(MINUTES):
        _, held, domains = [sample for sample in samples if sample[0] <= minute][-1]
        yield minute, held, domains


def queue_minutes(week: Week, demand: dict[str, set[int]]) -> tuple[dict[str, Counter[str]], Counter[tuple[str, str]]]:
    """Return per queue its minutes and GPU-minutes by kind, and the minutes of starved and borrowing pairs."""
    sums: dict[str, Counter[str]] = {name: Counter() for name in QUEUES}
    pairs: Counter[tuple[str, str]] = Counter()
    for minute, held, _ in held_by_minute(week):
        for name, (quota, limit) in QUEUES.items():
            if limit >= 0 and held[name] >= limit:
                sums[name]["at limit"] += 1
            if quota < 0:
                continue
            sums[name]["idle"] += max(quota - held[name], 0)
            sums[name]["borrowed"] += max(held[name] - quota, 0)
            if held[name] < quota and minute // HOUR in demand[name]:
                sums[name]["starved"] += 1
                for other, (other_quota, _) in QUEUES.items():
                    if other != name and 0 <= other_quota < held[other]:
                        pairs[name, other] += 1
    return sums, pairs


def away_minutes(week: Week) -> tuple[Counter[str], Counter[str]]:
    """Return by node the minutes in which it was not ready, and by state the nodes at the end."""
    away: Counter[str] = Counter()
    states: Counter[str] = Counter()
    for node in {change[0] for change in week.changes}:
        own = [(minute, state) for name, minute, state, _ in week.changes if name == node]
        for minute in range(MINUTES):
            state = [state for since, state in own if since <= minute][-1]
            away[node] += state != "ready"
        states[own[-1][1]] += 1
    return away, states
