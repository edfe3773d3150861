"""Rules about what the cluster has and who gets it: room in the wrong places, a queue that starves beside one that
borrows, capacity that went away, a queue at its limit for most of the day.

They rest on capacity samples, which are kept every five minutes for a day and every hour after that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from apps.alerts.rules.base import Finding, Values, bounded, by_cause, cause_finding
from apps.alerts.rules.facts import Facts, QueueFact, Sample, Stretch, Topic, queue_of
from apps.alerts.rules.verdicts import BEFORE_SCHEDULER, NEVER_CODES
from gangdash.engine.verdict import ReasonCode, Verdict, Who
from gangdash.reasons.wording import counted, duration

UNLIMITED = -1
SLACK = 1e-6
"""Held amounts are sums of shares of GPUs."""
ROOM_CODES = frozenset({ReasonCode.FRAGMENTED, ReasonCode.DOMAIN_BUSY})


def _held_since(facts: Facts, not_before: datetime, holds: Callable[[Sample], bool]) -> datetime:
    """Return since when every sample fulfils a condition that the newest one does, but not before a moment."""
    since = facts.at
    for sample in facts.samples_back():
        if since <= not_before or not holds(sample):
            break
        since = sample.at
    return max(since, not_before)


def fragmentation(facts: Facts, _values: Values) -> list[Finding]:
    """Find causes whose oldest gang would have enough free GPUs, were they in one place."""
    sample = facts.sample()
    free = sample.free() if sample else None
    if free is None:
        return []
    rows = [row for row in facts.standing if row.code in ROOM_CODES and row.waits]
    found = []
    for group in by_cause(rows).values():
        oldest = facts.oldest_first(group)[0]
        if 0 < oldest.gpus <= free + SLACK:
            found.append(_fragmented(facts, group, oldest, free))
    return found


def _fragmented(facts: Facts, group: list[Stretch], oldest: Stretch, free: float) -> Finding:
    def has_room(sample: Sample) -> bool:
        amount = sample.free()
        return amount is not None and amount + SLACK >= oldest.gpus

    since = _held_since(facts, oldest.opened, has_room)
    path = facts.gangs[oldest.gang].path
    text = f"{counted(free, 'GPU', 'GPUs')} are free and {path} asks for {oldest.gpus:g}, but no one place has them."
    return cause_finding(facts, group, text=text, since=since)


# Queues


def _queues(facts: Facts) -> dict[str, QueueFact]:
    return {name: queue_of(seen) for name, seen in facts.about(Topic.QUEUE).items()}


def _allocated(sample: Sample, queue: str) -> float | None:
    return sample.queues.get(queue, (None, None))[0]


def starvation(facts: Facts, _values: Values) -> list[Finding]:
    """Find queues below what they deserve, with work that waits, while a sibling holds more than it deserves."""
    sample, queues = facts.sample(), _queues(facts)
    if sample is None:
        return []
    waiting: dict[str, list[Stretch]] = {}
    for row in facts.standing:
        if row.waits and row.gpus and row.verdict not in BEFORE_SCHEDULER:
            waiting.setdefault(facts.gangs[row.gang].queue, []).append(row)
    found = []
    for name, rows in waiting.items():
        queue = queues.get(name)
        borrower = _borrower(queue, queues, sample) if queue and _is_under(queue, sample) else None
        if queue is not None and borrower is not None:
            found.append(_starved(facts, queue, borrower, rows))
    return found


def _is_under(queue: QueueFact, sample: Sample) -> bool:
    held = _allocated(sample, queue.name)
    # Unlimited is no promise of anything that could be missed.
    return held is not None and (queue.quota or 0.0) > held + SLACK


def _is_over(queue: QueueFact, sample: Sample) -> bool:
    held = _allocated(sample, queue.name)
    return held is not None and queue.quota != UNLIMITED and held > (queue.quota or 0.0) + SLACK


def _borrower(queue: QueueFact, queues: Mapping[str, QueueFact], sample: Sample) -> QueueFact | None:
    """Return the sibling that holds most above what it deserves."""
    over = [
        other
        for other in queues.values()
        if other.parent == queue.parent and other.name != queue.name and _is_over(other, sample)
    ]
    return max(over, key=lambda q: ((_allocated(sample, q.name) or 0.0) - (q.quota or 0.0), q.name), default=None)


def _starved(facts: Facts, queue: QueueFact, borrower: QueueFact, rows: list[Stretch]) -> Finding:
    ordered = facts.oldest_first(rows)
    waits = facts.waits_since(ordered[0])
    since = _held_since(facts, waits, lambda sample: _is_under(queue, sample) and _is_over(borrower, sample))
    sample = facts.sample()
    held = _allocated(sample, queue.name) if sample else None
    other = _allocated(sample, borrower.name) if sample else None
    text = (
        f"{queue.name} holds {held or 0:g} of the {queue.quota or 0:g} GPUs it deserves; "
        f"{borrower.name} holds {other or 0:g} and deserves {borrower.quota or 0:g}."
    )
    return Finding(
        signature=f"STARVATION||Queue/{queue.name}",
        since=since,
        title=f"Queue {queue.name} starves while {borrower.name} borrows",
        text=text,
        verdict=Verdict.POLICY,
        subject=f"Queue/{queue.name}",
        who=Who.QUEUE_ADMIN,
        queue=queue.name,
        gangs=tuple(row.gang for row in ordered),
        gpus=sum(row.gpus for row in ordered),
    )


def limit_wall(facts: Facts, values: Values) -> list[Finding]:
    """Find queues that stood at their limit for most of the last day while GPUs were free."""
    window = timedelta(seconds=values["window_seconds"])
    start = facts.at - window
    samples = facts.samples_since(start)
    found = []
    for name, queue in _queues(facts).items():
        if queue.limit is None or queue.limit <= 0 or _allocated_never(samples, name):
            continue
        seconds, since = _time_at_limit(facts, samples, queue, start)
        if seconds >= values["share"] / 100 * window.total_seconds():
            found.append(_wall(queue, seconds, window, since))
    return found


def _allocated_never(samples: Sequence[Sample], name: str) -> bool:
    return not any(_allocated(sample, name) is not None for sample in samples)


def _time_at_limit(
    facts: Facts, samples: Sequence[Sample], queue: QueueFact, start: datetime
) -> tuple[float, datetime]:
    """Return for how long a queue was at its limit with GPUs free, and when that first was so."""
    ends = [row.at for row in samples[1:]] + [facts.at]
    seconds, first = 0.0, facts.at
    for row, end in zip(samples, ends, strict=True):
        begin = max(row.at, start)
        if _is_at_limit(row, queue) and end > begin:
            seconds += (end - begin).total_seconds()
            first = min(first, begin)
    return seconds, first


def _is_at_limit(sample: Sample, queue: QueueFact) -> bool:
    held, free = _allocated(sample, queue.name), sample.free()
    return held is not None and free is not None and free > SLACK and held + SLACK >= (queue.limit or 0.0)


def _wall(queue: QueueFact, seconds: float, window: timedelta, since: datetime) -> Finding:
    share = seconds / window.total_seconds()
    return Finding(
        signature=f"LIMIT_WALL||Queue/{queue.name}",
        since=since,
        title=f"Queue {queue.name} is at its limit of {queue.limit:g} GPUs",
        text=f"At its limit for {share:.0%} of the last {duration(window.total_seconds())} while GPUs were free.",
        verdict=Verdict.POLICY,
        code=ReasonCode.QUEUE_LIMIT,
        subject=f"Queue/{queue.name}",
        who=Who.QUEUE_ADMIN,
        queue=queue.name,
    )


# Lost capacity


def capacity_loss(facts: Facts, values: Values) -> list[Finding]:
    """Find that GPUs went away: too many of the cluster's, or all of a domain's."""
    window = facts.samples_since(facts.at - timedelta(seconds=values["window_seconds"]))
    if not window:
        return []
    now, found = window[-1], []
    for place in _places(window):
        before, since = _best(window, place)
        usable = _usable(now, place)
        if before <= 0 or usable is None:
            continue
        lost = before - usable
        is_cluster = place == ""
        if (is_cluster and lost > values["share"] / 100 * before + SLACK) or (not is_cluster and usable <= SLACK):
            found.append(_loss(facts, place, before, usable, since))
    return found


def _places(window: Sequence[Sample]) -> list[str]:
    """Return every place that was ever seen in the window, the cluster itself first."""
    names = {name for sample in window for name in sample.domains}
    return sorted(names)


def _usable(sample: Sample, place: str) -> float | None:
    """Return the GPUs of a place that pods may use; a domain that is gone has none."""
    amounts = sample.domains.get(place)
    if amounts is None:
        return None if place == "" else 0.0
    return max(amounts[0] - amounts[2], 0.0)


def _best(window: Sequence[Sample], place: str) -> tuple[float, datetime]:
    """Return the most that a place had in the window, and when it last had it."""
    best, last = 0.0, window[-1].at
    for sample, after in zip(window, [*window[1:], window[-1]], strict=True):
        usable = _usable(sample, place)
        if usable is not None and usable >= best - SLACK:
            best, last = max(best, usable), after.at
    return best, last


def _loss(facts: Facts, place: str, before: float, usable: float, since: datetime) -> Finding:
    hit = [
        row
        for row in facts.standing
        if row.opened >= since and row.waits and (row.code in NEVER_CODES or row.verdict == Verdict.NODE)
    ]
    name = place.rpartition("|")[2] if place else facts.cluster
    what = (
        f"Domain {name} has no usable GPU left"
        if place
        else f"{counted(before - usable, 'GPU', 'GPUs')} of {name} went away"
    )
    never = sum(row.code in NEVER_CODES for row in hit)
    return Finding(
        signature=bounded(f"CAPACITY_LOSS||{place}"),
        since=since,
        title=what,
        text=f"{usable:g} of {counted(before, 'GPU', 'GPUs')} can be used. "
        f"{counted(never, 'gang', 'gangs')} can never fit since then.",
        verdict=Verdict.NODE,
        subject=place,
        who=Who.CLUSTER_ADMIN,
        gangs=tuple(row.gang for row in facts.oldest_first(hit)),
        gpus=sum(row.gpus for row in hit),
    )
