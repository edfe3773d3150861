"""What the shard's own configuration takes from a gang: an action that is switched off, a search that ends too soon.

Asked by running the shard's actions again with the default actions, or with more time to search; the gang has to start
then. Rules and priorities stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from gangdash.engine.explain.build import action_noun, named
from gangdash.engine.explain.gang import Gang
from gangdash.engine.identifiers import ConstraintId
from gangdash.engine.model.config import DEFAULT_ACTIONS, SchedulerConfig
from gangdash.engine.sandbox import Lift, attempt
from gangdash.engine.session import JobState, Session
from gangdash.engine.verdict import Certainty, Finding, Fix, FixKind, ReasonCode, Waiting, Who

_EVICTING = frozenset({"consolidation", "reclaim", "preempt"})
_LONGER = 4.0
"""Times its budget that a search may go on in the run that tells whether the budget is the cause."""
_NODES_MAX = 1_100
"""Beyond this many nodes a longer search costs more than the rest of the answer together."""
_CLOCKS: Mapping[str, float] = {
    "maxJobSearchDuration": 240.0,
    "maxActionSearchDuration.default": 300.0,
    "maxGeneratorSearchDuration.NodeLocalGreedy": 30.0,
    "maxGeneratorSearchDuration.MultiNodeGang": 120.0,
}
"""The scheduler's own limits where the shard names none, in seconds."""


def _with_config(session: Session, config: SchedulerConfig) -> Iterator[None]:
    before = session.shard
    session.shard = replace(before, config=config)
    try:
        yield
    finally:
        session.shard = before


@contextmanager
def _all_actions(session: Session, _job: JobState) -> Iterator[None]:
    yield from _with_config(session, replace(session.config, actions=DEFAULT_ACTIONS))


@contextmanager
def _longer_search(session: Session, _job: JobState) -> Iterator[None]:
    limits = {**_CLOCKS, **session.config.search_budgets}
    longer = {name: limit * _LONGER for name, limit in limits.items()}
    yield from _with_config(session, replace(session.config, search_budgets=longer))


def switched(gang: Gang) -> Iterator[Finding]:
    """Yield the action that would start the gang and is not configured, or the search that ends before it is done."""
    session, job = _opened(gang)
    if session is None or job is None:
        return
    if _EVICTING - set(session.config.actions):
        found = _try(session, job, _all_actions)
        if found and found not in session.config.actions:
            yield _action_off(gang, found)
    hit = gang.result.budget_hit if gang.result is not None else ""
    if hit and len(session.nodes) <= _NODES_MAX and _try(session, job, _longer_search):
        yield _search_ends(gang, hit)


def _opened(gang: Gang) -> tuple[Session | None, JobState | None]:
    return (gang.context.session(gang.shard), gang.job) if gang.shard is not None else (None, None)


def _try(session: Session, job: JobState, lift: Lift) -> str:
    """Return the action that starts the gang with the lift; empty where none does."""
    return attempt(session, job, alone=False, lifts=[lift]).action


def _action_off(gang: Gang, action: str) -> Finding:
    shard = gang.shard.name if gang.shard is not None else "default"
    source = f"actions of shard {shard}"
    return Finding(
        ReasonCode.FEATURE_OFF,
        form="action",
        facts={"action": action, "noun": action_noun(action), "shard": shard},
        binding=(named(ConstraintId.FEATURE_ENABLED, f"action {action}", "configured", "not configured", source),),
        waiting=Waiting(helps="unknown"),
        certainty=Certainty.PROVED,
    )


def _search_ends(gang: Gang, budget: str) -> Finding:
    """The certainty is that of an estimate: the scheduler counts seconds, the replay what they would have bought."""
    shard = gang.shard.name if gang.shard is not None else "default"
    return Finding(
        ReasonCode.SEARCH_BUDGET,
        facts={"budget": budget, "shard": shard},
        binding=(
            named(
                ConstraintId.SCHEDULER_WALK, gang.meta.name, "a search that ends with a placement", budget, "budgets"
            ),
        ),
        waiting=Waiting(helps="unknown"),
        fixes=(
            Fix(
                FixKind.WAIT_FOR,
                {"object": f"SchedulingShard/{shard}"},
                {"what": f"a longer search budget ({budget}) in shard {shard}"},
                who=Who.PLATFORM,
            ),
        ),
        certainty=Certainty.UNPROVEN,
    )
