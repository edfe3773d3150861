"""Switches that break the fake API server on purpose, for one kind or for all.

A fault lasts until it is cleared, or for `times` requests. Faults of one kind add up: slow and cut is both.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from gangdash.simulator.answers import ApiError, Response
from gangdash.simulator.kinds import KINDS, find_kind

ALL = "*"
# Stands for /version, /api and /apis where a switch takes a kind.
DISCOVERY = "discovery"


@dataclass(slots=True)
class Plan:
    """What is to go wrong with one request; the server carries it out."""

    delay: float = 0.0
    instead: Response | None = None
    expire: bool = False
    ignore_limit: bool = False
    page_cached: bool = False
    cut_at: float | None = None
    keep_part: float | None = None
    malformed: bool = False
    padding: int = 0


@dataclass(slots=True)
class _Fault:
    apply: Callable[[Plan], None]
    left: int | None
    paging_only: bool = False


@dataclass(slots=True)
class Faults:
    """The switches of one server; safe to use while it answers."""

    _by_resource: dict[str, list[_Fault]] = field(default_factory=dict)
    _hidden: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def forbid(self, kind: str, *, times: int | None = None) -> None:
        """Answer 403, as for a role that does not list this kind."""
        resource = _resource(kind)
        message = f'{resource} is forbidden: User "viewer" cannot list resource "{resource.partition(".")[0]}"'
        self._refuse(kind, ApiError(403, message, details={"kind": resource.partition(".")[0]}), times)

    def throttle(self, kind: str, *, times: int | None = 1, retry_after: int = 1) -> None:
        """Answer 429 with Retry-After, as priority and fairness does."""
        headers = {"Retry-After": str(retry_after)}
        details = {"retryAfterSeconds": retry_after}
        message = "the server has received too many requests and has asked us to try again later"
        self._refuse(kind, ApiError(429, message, details=details, headers=headers), times)

    def fail(self, kind: str, *, status: int = 500, times: int | None = None) -> None:
        """Answer an error status, 500 unless told."""
        self._refuse(kind, ApiError(status, "Internal error occurred: etcdserver: leader changed"), times)

    def expire(self, kind: str, *, times: int | None = 1) -> None:
        """Answer 410 to requests with a continue token: the list changed too much between two pages."""
        self._add(kind, times, lambda plan: setattr(plan, "expire", True), paging_only=True)

    def slow(self, kind: str, seconds: float, *, times: int | None = None) -> None:
        """Wait before answering."""
        self._add(kind, times, lambda plan: setattr(plan, "delay", plan.delay + seconds))

    def cut(self, kind: str, *, at: float = 0.5, times: int | None = None) -> None:
        """Close the connection after a part of the body, before its end was said."""
        self._add(kind, times, lambda plan: setattr(plan, "cut_at", at))

    def truncate(self, kind: str, *, keep: float = 0.5, times: int | None = None) -> None:
        """End the body early, but properly: a whole answer with half a document."""
        self._add(kind, times, lambda plan: setattr(plan, "keep_part", keep))

    def malformed(self, kind: str, *, times: int | None = None) -> None:
        """Answer with a body of the right length that is not JSON."""
        self._add(kind, times, lambda plan: setattr(plan, "malformed", True))

    def answer(self, kind: str, response: Response, *, times: int | None = None) -> None:
        """Answer with anything at all: a proxy's page, an empty body, another document."""
        self._add(kind, times, lambda plan: setattr(plan, "instead", response))

    def huge(self, kind: str, size: int, *, times: int | None = None) -> None:
        """Make the answer larger by so many bytes of blanks, sent without holding them."""
        self._add(kind, times, lambda plan: setattr(plan, "padding", size))

    def ignore_limit(self, kind: str, *, times: int | None = None) -> None:
        """Send everything in one page, whatever was asked."""
        self._add(kind, times, lambda plan: setattr(plan, "ignore_limit", True))

    def page_cached(self, kind: str, *, times: int | None = None) -> None:
        """Keep to the limit in lists from the cache too, as servers since 1.34 do."""
        self._add(kind, times, lambda plan: setattr(plan, "page_cached", True))

    def unserve(self, kind: str) -> None:
        """Answer 404 and leave the kind out of discovery, as where it was never installed."""
        with self._lock:
            self._hidden.update(kind.resource for kind in KINDS) if kind == ALL else self._hidden.add(_resource(kind))

    def clear(self, kind: str | None = None) -> None:
        """Mend one kind, or everything."""
        with self._lock:
            if kind is None:
                self._by_resource.clear()
                self._hidden.clear()
            else:
                self._by_resource.pop(_resource(kind), None)
                self._hidden.discard(_resource(kind))

    @property
    def hidden(self) -> frozenset[str]:
        """Return the resources that are not served."""
        with self._lock:
            return frozenset(self._hidden)

    def plan(self, resource: str, *, paging: bool) -> Plan:
        """Use up one request's worth of the faults of a resource; `paging` tells a request with a continue token."""
        plan = Plan()
        with self._lock:
            for fault in [*self._by_resource.get(ALL, ()), *self._by_resource.get(resource, ())]:
                if fault.left == 0 or (fault.paging_only and not paging):
                    continue
                if fault.left is not None:
                    fault.left -= 1
                fault.apply(plan)
        return plan

    def _refuse(self, kind: str, refusal: ApiError, times: int | None) -> None:
        self.answer(kind, refusal.response(), times=times)

    def _add(self, kind: str, times: int | None, apply: Callable[[Plan], None], *, paging_only: bool = False) -> None:
        with self._lock:
            self._by_resource.setdefault(_resource(kind), []).append(_Fault(apply, times, paging_only))


def _resource(kind: str) -> str:
    """Return the resource a switch means; KeyError for a kind the server does not know."""
    return kind if kind in (ALL, DISCOVERY) else find_kind(kind).resource
