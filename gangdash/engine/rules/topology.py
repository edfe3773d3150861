"""In which parts of the cluster may a gang, or a subgroup of it, be tried, and in which order?

From the nodes it may use, the smallest domain that holds them all must have room for the tasks; then
every domain of the allowed levels with room is a candidate, deepest level first, tightest first. A
required level pins a gang to the domains where its pods run already. Taints, affinity and limits are
not looked at here. Mirrors plugins/topology/job_filtering.go and node_scoring.go (KAI d5bc503a).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from gangdash.engine.model.podgroup import TopologyConstraint
from gangdash.engine.rules import humanize
from gangdash.engine.rules.topology_tree import (
    ROOT,
    Domain,
    Tree,
    is_homogeneous,
    sort_tree,
    tightness,
)
from gangdash.engine.session import (
    ACTIVE_ALLOCATED,
    CPU,
    DEFAULT_POD_SET,
    GPU,
    MEMORY,
    PODS,
    GangError,
    JobState,
    NodeState,
    PodSet,
    Session,
    SubGroup,
    TaskState,
    Vector,
)
from gangdash.engine.statement.vectors import added

SCHEDULING_ERRORS = "PodSchedulingErrors"
NOT_ENOUGH = "Not enough resources for the workload"
SCORE = 100_000

_STEPS = 10


def install(session: Session) -> Topologies:
    rules = Topologies(session)
    session.hooks.subset_nodes.append(rules.subset_nodes)
    session.hooks.node_scorers.append(rules)
    session.hooks.before_job.append(rules.forget_scores)
    return rules


class Topologies:
    """The trees of a session and, per attempt, how well nodes suit a preferred level."""

    def __init__(self, session: Session) -> None:
        self.trees = {topology.name: Tree(topology, session) for topology in session.snapshot.topologies}
        self._scores: dict[str, dict[str, float]] = {}
        """Node scores by name of the subgroup whose preferred level they come from."""

    # Scores

    def forget_scores(self, _: JobState) -> None:
        self._scores = {}

    def prepare(self, task: TaskState, nodes: Sequence[NodeState]) -> None:
        """Nothing to prepare: scores were made with the node sets."""

    def scores_of(self, task: TaskState) -> dict[str, float] | None:
        """Return the scores that apply to the task by node name, ``None`` where no preferred level does."""
        if not self._scores:
            return None
        member: SubGroup | None = task.pod_set
        while member is not None:
            scores = self._scores.get(member.name)
            if scores is not None:
                return scores
            member = member.parent
        return None

    def score(self, task: TaskState, node: NodeState) -> float | None:
        scores = self.scores_of(task)
        return 0.0 if scores is None else scores.get(node.name)

    # Node sets

    def subset_nodes(
        self, job: JobState, member: SubGroup, tasks: Sequence[TaskState], nodes: list[NodeState]
    ) -> Iterable[list[NodeState]] | None:
        """Return the node sets to try for a subgroup's tasks, noting on the gang why there are none."""
        constraint = member.constraint
        if constraint is None or not constraint.topology:
            return [nodes]
        tree = self.trees.get(constraint.topology)
        if tree is None:
            job.add_error(SCHEDULING_ERRORS, f"Requested topology {constraint.topology} does not exist")
            return ()
        usable = tree.usable(nodes)
        start = tree.common_domain(usable, constraint.preferred_level)
        if start is None:
            return None
        tree.refresh()
        question = _Question(job, member, tree, tasks, start)
        if not question.fits(start):
            where = "the cluster" if start is tree.root else start.id
            text = f": not enough resources in {where} to allocate the job"
            job.add_error(SCHEDULING_ERRORS, question.unmet + text)
            return ()
        sort_tree(start, question.asked, constraint.preferred_level or constraint.required_level)
        if constraint.preferred_level:
            self._scores[member.name] = _node_scores(start, constraint.preferred_level)
        domains = question.fitting_domains()
        return None if domains is None else (tree.nodes_of(domain, usable) for domain in domains)


class _Question:
    """One search for the candidate domains of a subgroup's tasks.

    A domain outside of the one where the search starts counts as having nothing, as in the scheduler.
    """

    def __init__(
        self,
        job: JobState,
        member: SubGroup,
        tree: Tree,
        tasks: Sequence[TaskState],
        start: Domain,
    ) -> None:
        self.job = job
        self.member = member
        self.constraint = member.constraint or TopologyConstraint()
        self.tree = tree
        self.tasks = tasks
        self.start = start
        self.sum: Vector = tasks[0].request
        for task in tasks[1:]:
            self.sum = added(self.sum, task.request)
        self.asked = [
            (slot, need) for slot, need in enumerate(self.sum) if need > 0 and slot != PODS and slot not in tree.backed
        ]
        """What decides by its sum: every resource asked for but the number of pods and claimed devices."""
        self._rooms: Sequence[int] | None = None
        if is_homogeneous(tasks):
            largest = [max(amounts) for amounts in zip(*(task.request for task in tasks), strict=True)]
            self._rooms = tree.rooms(largest, len(tasks))

    def fits(self, domain: Domain) -> bool:
        """Whether the domain has room for the tasks by their number, or where they differ by their sum."""
        if not self.start.holds(domain):
            return not self.asked
        if self._rooms is not None:
            return self._rooms[domain.index] >= len(self.tasks)
        return tightness(self.asked, domain.free) <= 1

    @property
    def unmet(self) -> str:
        subject = f"job <{self.job.full_name}>"
        if self.member.name and self.member.name != DEFAULT_POD_SET:
            subject += f", subgroup {self.member.name}"
        level = self.constraint.required_level
        return f"topology {self.tree.name}, requirement {level} couldn't be satisfied for {subject}"

    def shortage(self, domain: Domain) -> GangError:
        """Return why the tasks do not fit the domain."""
        inside = self.start.holds(domain)
        if inside and self._rooms is not None:
            room = self._rooms[domain.index]
            text = f"node-group {domain.id} can allocate only {room} of {len(self.tasks)} required pods"
            return GangError(NOT_ENOUGH, (text,), domain=domain.id, sub_group=self.member.name)
        short, detailed = [], []
        for slot, name in enumerate(self.tree.names):
            asked, free = self.sum[slot], (domain.free if inside else self.tree.nothing)[slot]
            if asked > free:
                text, detail = _short_of(domain.id, slot, name, asked, free)
                short.append(text)
                detailed.append(detail)
        return GangError(NOT_ENOUGH, tuple(short), tuple(detailed), domain=domain.id, sub_group=self.member.name)

    def fitting_domains(self) -> list[Domain] | None:
        """Return the candidates in order of trial; ``None`` where the levels make no sense."""
        levels = self._relevant_levels()
        if levels is None:
            return None
        allowed = self._allowed()
        domains = [domain for domain in self.tree.upwards(levels) if allowed is None or domain.index in allowed]
        fitting = [domain for domain in domains if self.fits(domain)]
        if not fitting:
            broadest = sorted((domain for domain in domains if domain.level == levels[-1]), key=lambda d: d.id)
            self.job.errors.extend(self.shortage(domain) for domain in broadest)
            self.job.add_error(SCHEDULING_ERRORS, self.unmet)
        return fitting

    def _relevant_levels(self) -> list[str] | None:
        """Return levels from the preferred (or required) one up to the required one, or to the root."""
        required, preferred = self.constraint.required_level, self.constraint.preferred_level
        if not required and not preferred:
            return None
        levels: list[str] = []
        for level in (*reversed(self.tree.labels), ROOT):
            if levels or level in {preferred, required}:
                levels.append(level)
            if level == required:
                break
        if required and required not in levels:
            return None
        if preferred and preferred not in levels:
            return None
        return levels

    def _allowed(self) -> set[int] | None:
        """Return the domains (by index) that pods running already leave open, ``None`` for all."""
        required = self.constraint.required_level
        homes = self._homes()
        if not required or homes is None:
            return None
        allowed: set[int] = set()
        for domain in self.tree.levels.get(required, {}).values():
            if any(node.name in homes for node in domain.nodes):
                allowed.update(range(domain.index, domain.last + 1))
        return allowed

    def _homes(self) -> set[str] | None:
        """Return the nodes of active pods of those pod sets that this step adds to, ``None`` without such pods."""
        names = {task.sub_group for task in self.tasks}
        pod_sets = [self.member] if isinstance(self.member, PodSet) else _descendants(self.member)
        touched = [pod_set for pod_set in pod_sets if isinstance(self.member, PodSet) or pod_set.name in names]
        if not any(pod_set.active_allocated for pod_set in touched):
            return None
        return {task.node_name for pod_set in touched for task in pod_set.tasks if task.status & ACTIVE_ALLOCATED}


def _descendants(member: SubGroup) -> list[PodSet]:
    return [member] if isinstance(member, PodSet) else list(member.descendants())


def _node_scores(start: Domain, level: str) -> dict[str, float]:
    """Score nodes by the place of their preferred-level domain in the sorted tree: the last one scores best."""
    domains = _at_level(start, level)
    return {
        node.name: math.floor((index + 1) / len(domains) * _STEPS) * SCORE
        for index, domain in enumerate(domains)
        for node in domain.nodes
    }


def _at_level(domain: Domain, level: str) -> list[Domain]:
    if domain.level == level:
        return [domain]
    return [found for child in domain.children for found in _at_level(child, level)]


def _short_of(domain: str, slot: int, name: str, asked: float, free: float) -> tuple[str, str]:
    if slot == GPU:
        figures = f"requested: {humanize.three_digits(asked)}, available: {humanize.three_digits(free)}"
        shown, plural = "GPUs", "resource"
    elif slot in {CPU, MEMORY}:
        unit = humanize.CORES if slot == CPU else humanize.GIGABYTES
        figures = f"requested: {humanize.digits(asked / unit)}, available: {humanize.digits(free / unit)}"
        shown, plural = ("CPU cores" if slot == CPU else "memory"), "resources"
    else:
        figures = f"requested: {int(asked)}, available: {int(free)}"
        shown, plural = name, "resource"
    detailed = f"{domain} didn't have enough {plural}: {shown}, {figures}"
    if name.startswith("nvidia.com/mig-"):
        return f"node-group(s) didn't have enough of mig profile: {name}", detailed
    return f"node-group(s) didn't have enough resources: {shown}", detailed
