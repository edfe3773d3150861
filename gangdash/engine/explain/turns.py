"""Would a gang start, at its own turn in the cycle, if rules were lifted for it alone?

Until its turn a cycle goes on as if nothing had changed, so one pass over the cycle can ask for every gang, where a
whole cycle for each would cost the same again and again. A gang that starts and is evicted by a later gang of the same
cycle counts as started here.
"""

from __future__ import annotations

from gangdash.engine.explain.lifts import Rule, Rules, lifts_of
from gangdash.engine.rules.capacity import limit_violation, quota_violation, step_quota
from gangdash.engine.rules.steps import next_tasks
from gangdash.engine.sandbox import Attempt, attempts_in_turn
from gangdash.engine.session import JobState, Session


class Turns:
    """Answers for the gangs of one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: dict[tuple[str, Rules], Attempt] = {}

    def result(self, job: JobState, rules: Rules) -> Attempt:
        """Return what becomes of the gang at its turn; the first question answers for all gangs under a cap too."""
        key = (job.key, rules)
        if key not in self._known:
            asked = {} if self._known else self._capped()
            asked[job.key] = [rules, *(other for other in asked.get(job.key, ()) if other != rules)]
            self._pass(asked)
        return self._known[key]

    def _pass(self, asked: dict[str, list[Rules]]) -> None:
        lifts = {key: [lifts_of(rules) for rules in sets] for key, sets in asked.items()}
        found = attempts_in_turn(self._session, lifts)
        for key, sets in asked.items():
            # Sets behind one that starts the gang were not tried to the end.
            for rules, attempt in zip(sets, found[key], strict=False):
                self._known[key, rules] = attempt

    def _capped(self) -> dict[str, list[Rules]]:
        """Return the gangs that a limit or quota stops, with the sets of rules that may have to go for them."""
        session = self._session
        found: dict[str, list[Rules]] = {}
        for job in session.jobs.values():
            if not job.pending or not job.is_ready or not session.is_queue_usable(job):
                continue
            asked = step_quota(session, next_tasks(session, job, real=True))
            caps = [Rule.LIMIT] if limit_violation(session, job, asked) else []
            caps += [Rule.QUOTA] if quota_violation(session, job, asked) else []
            if caps:
                found[job.key] = [frozenset(caps), frozenset((*caps, Rule.SHARE))]
        return found


def turns_of(session: Session) -> Turns:
    """Return the session's turns, made when they are first asked for."""
    found = session.memo.get(Turns)
    if not isinstance(found, Turns):
        found = session.memo[Turns] = Turns(session)
    return found
