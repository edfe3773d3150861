"""How a finding becomes an alert and ends: pending, firing, calm for a while, resolved.

Pure, and the same for live evaluation and for a look back, so that both say the same. Moments that lie ahead of
``at`` (the clock went back) count as now: nothing is lost and nothing waits for the clock to catch up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from apps.alerts.rules.base import Finding


@dataclass(frozen=True, slots=True)
class Timing:
    """How long a finding must last, and how long it is kept after it was last seen."""

    wait: timedelta
    keep: timedelta


@dataclass(frozen=True, slots=True)
class Track:
    """One signature of one rule. Firing once ``fired_at`` is set; calm since ``calm_since`` where it was not found."""

    signature: str
    since: datetime
    fired_at: datetime | None = None
    calm_since: datetime | None = None
    finding: Finding | None = None
    """What was found now; None where it was not."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one look did. ``tracks`` go on, pending ones too; ``dropped`` were pending and are not found any more."""

    tracks: Mapping[str, Track]
    fired: tuple[Track, ...]
    resolved: tuple[Track, ...]
    dropped: tuple[Track, ...]


def step(tracks: Mapping[str, Track], findings: Iterable[Finding], timing: Timing, at: datetime) -> Step:
    """Return where each signature stands after one look."""
    found = {item.signature: item for item in findings}
    kept: dict[str, Track] = {}
    fired, resolved, dropped = [], [], []
    for signature in [*found, *(name for name in tracks if name not in found)]:
        before = _settled(tracks.get(signature), at)
        after = _seen(before, found[signature], at) if signature in found else _unseen(before, at)
        if after.finding is None and after.fired_at is None:
            dropped.append(after)
        elif after.calm_since is not None and at - after.calm_since >= timing.keep:
            resolved.append(after)
        elif after.fired_at is None and at - after.since >= timing.wait:
            after = replace(after, fired_at=at)
            fired.append(after)
            kept[signature] = after
        else:
            kept[signature] = after
    return Step(kept, tuple(fired), tuple(resolved), tuple(dropped))


def _settled(track: Track | None, at: datetime) -> Track | None:
    """Return a track none of whose moments lies ahead."""
    if track is None:
        return None
    return replace(
        track,
        since=min(track.since, at),
        fired_at=min(track.fired_at, at) if track.fired_at else None,
        calm_since=min(track.calm_since, at) if track.calm_since else None,
    )


def _seen(track: Track | None, finding: Finding, at: datetime) -> Track:
    since = min(finding.since, at)
    if track is None:
        return Track(finding.signature, since, finding=finding)
    return replace(track, since=min(track.since, since), calm_since=None, finding=finding)


def _unseen(track: Track | None, at: datetime) -> Track:
    if track is None:
        raise ValueError("a signature that is neither found nor tracked has no place here")
    return replace(track, calm_since=track.calm_since or at, finding=None)
