"""Events of the demo cluster, counted and capped as the real ones are.

One component may send 25 events of one type about one object, and then one each five minutes; after that the last
time stands still though the cause goes on. Events are forgotten after an hour.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

BURST = 25
REFILL = timedelta(minutes=5)
LIFETIME = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class About:
    """The object an event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


@dataclass(slots=True)
class Event:
    """One Event object: repeats raise its count."""

    about: About
    component: str
    type: str
    reason: str
    message: str
    first: datetime
    last: datetime
    count: int
    serial: int
    annotations: Mapping[str, str]

    @property
    def name(self) -> str:
        """Return the object's name: that of what it is about and a number, as clients make them."""
        return f"{self.about.name}.{0x18ECC7F400000000 + self.serial:x}"


@dataclass(slots=True)
class _Allowance:
    left: int
    since: datetime


@dataclass(slots=True)
class EventBook:
    """All events that are still kept."""

    _events: dict[tuple[About, str, str, str, str], Event] = field(default_factory=dict)
    _allowances: dict[tuple[About, str, str], _Allowance] = field(default_factory=dict)
    _serial: int = 0
    _touched: set[int] = field(default_factory=set)

    def record(
        self,
        about: About,
        component: str,
        reason: str,
        message: str,
        now: datetime,
        *,
        warning: bool = False,
        times: int = 1,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        """Send an event so many times, as far as the sender's allowance goes."""
        kind = "Warning" if warning else "Normal"
        sent = self._take((about, component, kind), now, times)
        if not sent:
            return
        key = (about, component, kind, reason, message)
        event = self._events.get(key)
        if event is None:
            self._serial += 1
            event = Event(about, component, kind, reason, message, now, now, sent, self._serial, annotations or {})
            self._events[key] = event
        else:
            event.count += sent
            event.last = now
        self._touched.add(event.serial)

    def forget(self, now: datetime) -> None:
        """Drop what nobody has repeated for so long."""
        for key in [key for key, event in self._events.items() if now - event.last > LIFETIME]:
            del self._events[key]
        stale = [key for key, allowance in self._allowances.items() if now - allowance.since > 2 * LIFETIME]
        for name in stale:
            del self._allowances[name]

    def take_changed(self) -> list[Event]:
        """Return the events that came or grew since the last time."""
        changed = [event for event in self if event.serial in self._touched]
        self._touched.clear()
        return changed

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events.values())

    def _take(self, key: tuple[About, str, str], now: datetime, wanted: int) -> int:
        allowance = self._allowances.setdefault(key, _Allowance(BURST, now))
        refills = (now - allowance.since) // REFILL
        if refills:
            allowance.left = min(BURST, allowance.left + refills)
            allowance.since += refills * REFILL
        sent = min(wanted, allowance.left)
        allowance.left -= sent
        return sent
