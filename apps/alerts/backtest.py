"""What a rule would have done: the same rule and the same machine, fed from what is kept.

Pure. Looks once a minute where anything could have changed its mind; where that would be too much work it looks less
often and says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from apps.alerts.history import Cursor, History
from apps.alerts.machine import Track, step
from apps.alerts.rules.blindness import blind_since
from apps.alerts.rules.facts import Facts
from apps.alerts.settings import RuleSetting
from apps.workloads.choices import GangState

TICK = timedelta(minutes=1)
WORK_MAX = 1_000_000
"""Reasons that are looked at in one look back over all clusters: some seconds."""


@dataclass(frozen=True, slots=True)
class Firing:
    """One time that the rule would have fired; still firing at the end where ``until`` is None.

    One that ``is_carried`` had fired before the span began.
    """

    signature: str
    at: datetime
    until: datetime | None
    title: str
    verdict: str
    code: str
    gangs: int
    gpus: float
    is_carried: bool = False


@dataclass(frozen=True, slots=True)
class Backtest:
    """``looked_every`` is how far apart the looks were, ``blind_seconds`` how long the rule would have kept still."""

    start: datetime
    end: datetime
    firings: tuple[Firing, ...]
    looked_every: timedelta
    blind_seconds: float


def backtest(history: History, setting: RuleSetting, *, start: datetime, end: datetime, parts: int = 1) -> Backtest:
    """Run a rule over a span of the past. What began before the span counts from its true beginning.

    It is one of ``parts`` looks back that share the work.
    """
    tick = _tick(history, start, end, WORK_MAX / parts)
    tracks: Mapping[str, Track] = {}
    open_firings: dict[str, Firing] = {}
    firings: list[Firing] = []
    blind = 0.0
    for facts in _looks(history, start, end, tick):
        if setting.is_silent_when_blind and blind_since(facts) is not None:
            blind += tick.total_seconds()
            continue
        done = step(tracks, setting.find(facts), setting.timing, facts.at)
        tracks = done.tracks
        open_firings |= {track.signature: _firing(track, setting, start) for track in done.fired}
        firings += [_ended(open_firings.pop(track.signature), facts.at) for track in done.resolved]
    found = sorted([*firings, *open_firings.values()], key=lambda item: (item.at, item.signature))
    return Backtest(start, end, tuple(found), tick, blind)


def _looks(history: History, start: datetime, end: datetime, tick: timedelta) -> Iterator[Facts]:
    cursor, moment = Cursor(history), start
    while moment <= end:
        yield cursor.at(moment)
        moment += tick


def _tick(history: History, start: datetime, end: datetime, most: float) -> timedelta:
    """Return how often to look, so that the work stays within its bound."""
    standing = 0.0
    for row in history.stretches:
        lasted = min(row.closed or end, end) - max(row.opened, start)
        if row.state != GangState.FINE:
            standing += max(lasted, timedelta()) / TICK
    factor = 1
    while (standing + (end - start) / TICK) / factor > most:
        factor *= 2
    return TICK * factor


def _firing(track: Track, setting: RuleSetting, start: datetime) -> Firing:
    finding, at = track.finding, track.fired_at
    if finding is None or at is None:
        raise ValueError("what fires was found")
    return Firing(
        signature=track.signature,
        at=at,
        until=None,
        title=finding.title,
        verdict=finding.verdict,
        code=finding.code,
        gangs=len(finding.gangs),
        gpus=finding.gpus,
        is_carried=at == start and track.since + setting.timing.wait < start,
    )


def _ended(firing: Firing, at: datetime) -> Firing:
    return replace(firing, until=at)
