"""Let a gang try the actions on an opened session under other rules, and take everything back.

An attempt costs what the actions do, not what opening a session costs. It is exact: operations are undone through
the world's journal, everything else that actions and rules write is put back as it was. What a lift changes is the
lift's own business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass

from gangdash.engine.cycle import ACTIONS
from gangdash.engine.rules.affinity import remembered
from gangdash.engine.rules.fairshare import divide_again, pending_amounts
from gangdash.engine.rules.queue_order import Standings
from gangdash.engine.session import Amounts, JobState, Kind, Session, Statement, Status

Lift = Callable[[Session, JobState], AbstractContextManager[None]]
"""Takes a rule away for the time of one attempt."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What became of one gang: the action that placed pods of it and where; empty where none did."""

    action: str = ""
    nodes: frozenset[str] = frozenset()

    @property
    def starts(self) -> bool:
        return bool(self.nodes)


def attempt(session: Session, job: JobState, *, alone: bool, lifts: Sequence[Lift] = ()) -> Attempt:
    """Run the shard's actions until one places the gang; ``alone`` keeps pods of other gangs from being tried."""
    with ExitStack() as stack:
        stack.enter_context(_notes_kept(session))
        if alone:
            stack.enter_context(_others_gated(session, job))
        for lift in lifts:
            stack.enter_context(lift(session, job))
        stack.enter_context(_shares_divided(session, job, alone=alone))
        stack.enter_context(_undone(session))
        return _act(session, job, alone=alone)


def attempts_in_turn(session: Session, asked: Mapping[str, Sequence[Sequence[Lift]]]) -> dict[str, list[Attempt]]:
    """Run the shard's actions once and try gangs under lifted rules whenever it is their turn.

    ``asked`` has sets of lifts by key of the gang. Returns what became of the gang under each set, ending with the
    first set that starts it. What a gang does under lifted rules is taken back before the cycle goes on; it ends when
    there is nothing left to ask.
    """
    turns = _Turns(session, asked)
    with suppress(_AllAnswered), _notes_kept(session), _undone(session):
        session.hooks.before_turn.append(turns.take)
        try:
            for name in session.config.actions:
                if name in ACTIONS:
                    ACTIONS[name](session)
        finally:
            session.hooks.before_turn.remove(turns.take)
    return turns.found


class _AllAnswered(Exception):  # noqa: N818 - an end, not an error
    """Ends a cycle whose rest nobody asks about; everything it did is taken back."""


class _Turns:
    def __init__(self, session: Session, asked: Mapping[str, Sequence[Sequence[Lift]]]) -> None:
        self._session = session
        self._asked = asked
        self._is_trying = False
        self.found: dict[str, list[Attempt]] = {key: [Attempt() for _ in sets] for key, sets in asked.items()}

    def take(self, action: str, job: JobState) -> None:
        """Try a gang that was asked about under each set of lifts that has not started it yet."""
        if self._is_trying or job.key not in self._asked:
            return
        self._is_trying = True
        found = self.found[job.key]
        for index, lifts in enumerate(self._asked[job.key][: len(found)]):
            if not found[index].starts:
                found[index] = self._try(action, job, lifts)
            if found[index].starts:
                del found[index + 1 :]
                break
        self._is_trying = False
        if all(attempts[-1].starts for attempts in self.found.values() if attempts):
            raise _AllAnswered

    def _try(self, action: str, job: JobState, lifts: Sequence[Lift]) -> Attempt:
        session = self._session
        with ExitStack() as stack:
            stack.enter_context(_notes_kept(session))
            stack.enter_context(_others_gated(session, job))
            for lift in lifts:
                stack.enter_context(lift(session, job))
            stack.enter_context(_shares_divided(session, job, alone=False))
            stack.enter_context(_undone(session))
            ACTIONS[action](session)
            return _standing(session, job)


def _act(session: Session, job: JobState, *, alone: bool) -> Attempt:
    found = Attempt()
    for name in session.config.actions:
        action = ACTIONS.get(name)
        if action is None:
            continue
        action(session)
        found = _standing(session, job)
        if found.starts and (alone or not job.is_preemptible):
            # Nothing that follows could evict it again.
            break
    return found


def _standing(session: Session, job: JobState) -> Attempt:
    """Return what actions have committed for the gang's pods: a search may also leave promises that nobody acts on."""
    last = {task.uid: (kind, action, node) for action, (kind, task, node, _) in session.done if task.job is job}
    given = [
        (action, node)
        for uid, (kind, action, node) in last.items()
        if kind is not Kind.EVICT and job.tasks[uid].start_status is Status.PENDING
    ]
    return Attempt(given[-1][0], frozenset(node for _, node in given)) if given else Attempt()


@contextmanager
def _undone(session: Session) -> Iterator[None]:
    """Take back every operation that is made meanwhile; may be nested."""
    outer = session.journal
    if outer is None:
        session.journal = []
    mark = len(session.journal or ())
    try:
        yield
    finally:
        Statement(session).rewind(mark)
        session.journal = outer


@contextmanager
def _notes_kept(session: Session) -> Iterator[None]:
    """Put back what actions note on gangs and on the session beside their operations."""
    jobs = [
        (job, job.allocated, job.errors, job.task_errors, job.last_start, job.last_eviction, job.stale_since)
        for job in session.jobs.values()
    ]
    notes = (session.done, session.fits, session.budget_hits, session.one_of_several)
    looks = remembered(session)
    looked = (looks.states, looks.free, looks.indifferent)
    looks.states, looks.free, looks.indifferent = dict(looks.states), set(looks.free), set(looks.indifferent)
    for job, *_ in jobs:
        job.errors, job.task_errors = [], {}
    session.done, session.fits, session.budget_hits, session.one_of_several = [], {}, {}, set()
    try:
        yield
    finally:
        for job, allocated, errors, task_errors, last_start, last_eviction, stale_since in jobs:
            # What it holds is a sum of fractions, and taking one off again may leave a rest.
            job.allocated, job.errors, job.task_errors = allocated, errors, task_errors
            job.last_start, job.last_eviction, job.stale_since = last_start, last_eviction, stale_since
        session.done, session.fits, session.budget_hits, session.one_of_several = notes
        looks.states, looks.free, looks.indifferent = looked


@contextmanager
def _others_gated(session: Session, job: JobState) -> Iterator[None]:
    """Let the pending pods of all other gangs count as gated: nothing tries them."""
    hidden = [
        (other, task)
        for other in session.jobs.values()
        if other is not job and other.pending
        for task in other.tasks.values()
        if task.status is Status.PENDING
    ]
    for other, task in hidden:
        other.set_status(task, Status.GATED)
    try:
        yield
    finally:
        for other, task in hidden:
            other.set_status(task, Status.PENDING)


@contextmanager
def _shares_divided(session: Session, job: JobState, *, alone: bool) -> Iterator[None]:
    """Work out fair shares for the rules as lifted, and for what is asked when the others ask nothing."""
    before = [(queue, queue.request, queue.fair_share) for queue in session.queues.values()]
    if alone:
        _count_alone(session, job)
    divide_again(session)
    session.memo.pop(Standings, None)
    try:
        yield
    finally:
        for queue, request, fair_share in before:
            queue.request, queue.fair_share = request, fair_share
        session.memo.pop(Standings, None)


def _count_alone(session: Session, job: JobState) -> None:
    own = session.queues.get(job.queue)
    asked = [pending_amounts(session, task) for task in job.tasks.values() if task.status is Status.PENDING]
    for queue in session.queues.values():
        queue.request = queue.allocated
    for queue in own.ancestors if own is not None else ():
        queue.request = _sum(queue.request, asked)


def _sum(start: Amounts, amounts: Sequence[Amounts]) -> Amounts:
    return (
        start[0] + sum(a[0] for a in amounts),
        start[1] + sum(a[1] for a in amounts),
        start[2] + sum(a[2] for a in amounts),
    )
