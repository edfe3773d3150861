"""The best node that takes a task, asked once per group of equal nodes.

Gives the same node and the same noted reasons as asking every node in order: nodes of one group score and
answer alike, so a group stands for its first node, and a group that refuses counts as many times as it
has nodes that would have been asked before the chosen one. Tasks for which nodes of equal state may differ
(ports, volumes, claims, other pods, shared GPUs, a nominated node) are not chosen for here.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import groupby
from typing import NamedTuple

from gangdash.engine.model.pod import Pod
from gangdash.engine.rules.matching import host_ports
from gangdash.engine.rules.resource_fit import shortages
from gangdash.engine.rules.scoring import Placement, StateScorer
from gangdash.engine.rules.topology import Topologies
from gangdash.engine.session import GPU, JobState, NodeState, Session, TaskState
from gangdash.engine.session.buckets import AllBuckets, Buckets, Group, StateNumbers
from gangdash.engine.session.hooks import NodeScorer

_MOST_KEPT = 200_000
"""Answers kept before all are dropped: bounds memory on clusters whose states never repeat."""


class Answer(NamedTuple):
    """What a template of tasks meets on a state of nodes, resources alone."""

    fits_now: bool
    fits_later: bool
    score: float
    """Sum of the scorers that go by state."""
    may_take: bool
    """Whether resources suffice later, and no fixed rule keeps the template off such nodes."""


class Choices:
    """Chooses nodes for one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._numbers = StateNumbers()
        self._all: AllBuckets | None = None
        self._answers: dict[tuple[int, int], Answer] = {}
        self._short: dict[tuple[int, int], list[str] | None] = {}
        self._plain: dict[str, bool] = {}
        scorers = session.hooks.node_scorers
        self._by_state = [scorer for scorer in scorers if isinstance(scorer, StateScorer)]
        self._by_choice: list[NodeScorer] = [scorer for scorer in scorers if isinstance(scorer, Placement)]
        self._topologies = next((scorer for scorer in scorers if isinstance(scorer, Topologies)), None)

    def is_plain(self, task: TaskState) -> bool:
        """Whether nodes of equal state are equal for the task."""
        known = self._plain.get(task.uid)
        if known is None:
            pod = task.pod
            known = self._plain[task.uid] = not (
                task.asks_shared_gpu
                or pod.claims
                or pod.nominated_node
                or pod.volumes.claims
                or pod.volumes.ephemeral
                or host_ports(pod)
                or _names_nodes(pod)
                or any(tells_apart(task) for tells_apart in self._session.hooks.tells_apart)
            )
        return known

    def buckets(self, task: TaskState, nodes: list[NodeState]) -> Buckets:
        """Return the groups of a node set, for tasks of the same pod set as this one."""
        scores = self._topologies.scores_of(task) if self._topologies is not None else None
        if nodes is self._session.all_nodes and scores is None:
            if self._all is None:
                self._all = AllBuckets(self._session, self._numbers)
            return self._all.refresh()
        return Buckets(self._numbers, nodes, scores)

    def choose(self, task: TaskState, owner: JobState, buckets: Buckets, *, notes: bool) -> NodeState | None:
        """Return the best node that takes the task, noting for the gang why better ones do not."""
        nodes = self._session.all_nodes
        if not notes:
            return self._first_taker(task, owner, buckets)
        scored = self._scored(task, buckets)
        for _, run in groupby(scored, key=lambda entry: entry[0]):
            refused: list[tuple[list[int], tuple[str, ...] | list[str] | None]] = []
            chosen: int | None = None
            for _, group in run:
                members = buckets.groups[group]
                first = nodes[members[0]]
                reasons = self._refusal(task, owner, first, group[0])
                if reasons is _TAKES:
                    chosen = members[0] if chosen is None else min(chosen, members[0])
                else:
                    refused.append((members, reasons))
            for members, reasons in refused:
                asked = len(members) if chosen is None else bisect_left(members, chosen)
                if asked and reasons is not None:
                    owner.note_task(task).add(reasons, asked)
            if chosen is not None:
                return nodes[chosen]
        return None

    def _first_taker(self, task: TaskState, owner: JobState, buckets: Buckets) -> NodeState | None:
        """Return the best node that takes the task: by score, then by name."""
        nodes, answers, template = self._session.all_nodes, self._answers, task.template
        needed = task.request[GPU]
        groups = buckets.with_gpus(needed) if needed > 0 else buckets.groups
        candidates = []
        for group in groups:
            first = buckets.groups[group][0]
            answer = answers.get((template, group[0])) or self._answer(task, nodes[first], group[0])
            if answer.may_take:
                candidates.append((group, first, answer.score))
        if not candidates:
            return None
        known = buckets.one_per_gpus() if needed > 0 else [members[0] for members in buckets.groups.values()]
        for scorer in self._by_choice:
            scorer.prepare(task, [nodes[index] for index in known])
        scored = []
        for group, first, score in candidates:
            total = score + group[1]
            for scorer in self._by_choice:
                total += scorer.score(task, nodes[first]) or 0.0
            scored.append((-total, first, group[0]))
        scored.sort()
        for _, first, state in scored:
            if self._refusal(task, owner, nodes[first], state) is _TAKES:
                return nodes[first]
        return None

    def _scored(self, task: TaskState, buckets: Buckets) -> list[tuple[float, Group]]:
        """Return groups with their scores, best first."""
        nodes, answers, template = self._session.all_nodes, self._answers, task.template
        firsts = [nodes[members[0]] for members in buckets.groups.values()]
        for scorer in self._by_choice:
            scorer.prepare(task, firsts)
        scored: list[tuple[float, Group]] = []
        for group, node in zip(buckets.groups, firsts, strict=True):
            answer = answers.get((template, group[0])) or self._answer(task, node, group[0])
            total = answer.score + group[1]
            for scorer in self._by_choice:
                total += scorer.score(task, node) or 0.0
            scored.append((-total, group))
        scored.sort(key=lambda entry: entry[0])
        return scored

    def _answer(self, task: TaskState, node: NodeState, state: int) -> Answer:
        key = (task.template, state)
        answer = self._answers.get(key)
        if answer is None:
            if len(self._answers) > _MOST_KEPT:
                self._answers.clear()
            score = sum(scorer.score(task, node) or 0.0 for scorer in self._by_state)
            fits = node.fits_future(task)
            may_take = fits and not any(rule(task, node) for rule in self._session.hooks.excludes)
            answer = self._answers[key] = Answer(node.fits_idle(task), fits, score, may_take)
        return answer

    def _refusal(
        self, task: TaskState, owner: JobState, node: NodeState, state: int
    ) -> tuple[str, ...] | list[str] | None:
        """Return why the node refuses, ``None`` where it does without leaving a trace."""
        answer = self._answer(task, node, state)
        if not answer.fits_later:
            return self._shortage(task, node, answer, state)
        for check in self._session.hooks.predicates:
            reasons = check(task, owner, node)
            if reasons:
                return reasons
        return _TAKES

    def _shortage(self, task: TaskState, node: NodeState, answer: Answer, state: int) -> list[str] | None:
        if answer.fits_now:
            return None
        key = (task.template, state)
        if key not in self._short:
            if len(self._short) > _MOST_KEPT:
                self._short.clear()
            traced = not node.fits_vector(task, node.idle)
            self._short[key] = [s.short for s in shortages(task, node, of_several=False)] if traced else None
        return self._short[key]


_TAKES = ("takes",)
"""What a group answers that takes the task; compared by identity."""


def _names_nodes(pod: Pod) -> bool:
    """Whether the pod's node affinity goes by names of nodes."""
    terms = pod.affinity.node_required if pod.affinity is not None else None
    return any(term.match_fields for term in terms or ())


def choices_of(session: Session) -> Choices:
    """Return the session's chooser, made when it is first asked for."""
    found = session.memo.get(Choices)
    if not isinstance(found, Choices):
        found = session.memo[Choices] = Choices(session)
    return found
