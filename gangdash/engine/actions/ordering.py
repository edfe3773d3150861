"""Gangs in the order in which an action takes them: a tree of queues, each a heap of gangs or of queues.

At every level sibling queues compare by the next gang of their subtree (or, for victims, by all gangs
already taken from the leaf and the next one). Taking a gang marks the queues above it; a marked queue is
ranked again only when it comes to the top. Mirrors pkg/scheduler/actions/utils/job_order_by_queue.go and
input_jobs.go (KAI d5bc503a).
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from gangdash.engine.actions.heap import Heap
from gangdash.engine.rules.queue_order import Rank, comes_first, rank_of
from gangdash.engine.rules.steps import step_amounts
from gangdash.engine.session import Amounts, JobState, QueueState, Session
from gangdash.engine.statement.vectors import NO_AMOUNTS

DELAY_REASON = "PreemptionDelayNotElapsed"


@dataclass(frozen=True, slots=True)
class Selection:
    """Which gangs take part. Gangs of queues that are missing or no leaf never do."""

    only_ready: bool = False
    only_pending: bool = False
    only_preemptible: bool = False
    only_active: bool = False
    outside_preemption_delay: bool = False
    """Leave out gangs that may not evict others yet, and tell them so."""


class _Node:
    """A queue in the tree, with its gangs (leaf) or its child queues."""

    def __init__(
        self, queue: QueueState, jobs: Heap[JobState] | SortedJobs | None, children: Heap[_Node] | None
    ) -> None:
        self.queue = queue
        self.jobs = jobs
        self.children = children
        self.parent: _Node | None = None
        self.is_linked = False
        self.is_dirty = False
        self.ranked: tuple[Amounts, Amounts, Rank] | None = None
        """Its rank, and what the queue held and its next gang asked for when it was worked out."""

    def __len__(self) -> int:
        return len(self.jobs) if self.jobs is not None else len(self.children or ())


class JobsByQueue:
    """``victims`` turns every order round: the gang that is served last comes first."""

    def __init__(self, session: Session, *, victims: bool = False, depth: int | None = None) -> None:
        self._session = session
        self._victims = victims
        self._depth = depth
        self._roots: Heap[_Node] = Heap(self._node_before)
        self._nodes: dict[str, _Node] = {}
        self._lost: dict[str, Amounts] = {}
        """What the gangs already taken from a leaf queue hold."""

    @property
    def is_empty(self) -> bool:
        return not self._roots

    def add(self, jobs: Iterable[JobState], selection: Selection) -> None:
        for job in jobs:
            if takes_part(self._session, job, selection):
                self.push(job)

    def seed(self, jobs: Sequence[JobState], first: JobState) -> None:
        """Begin a queue with gangs in their order, as pushing them one by one, ``first`` before all, would."""
        self.push(first)
        node = self._nodes[first.queue]
        node.jobs = SortedJobs(self._session, jobs)

    def pop(self) -> JobState:
        node = self._top(self._roots)
        while node.jobs is None:
            assert node.children is not None
            node = self._top(node.children)
        job = node.jobs.pop()
        if self._victims:
            self._lost[node.queue.name] = self._with(node, job)
        self._after_pop(node)
        return job

    def push(self, job: JobState) -> None:
        queue = self._session.queues[job.queue]
        node = self._nodes.get(job.queue)
        if node is None:
            node = self._nodes[job.queue] = _Node(queue, Heap(self._job_before, self._depth), None)
        assert node.jobs is not None
        node.jobs.push(job)
        self._link(node)
        self._mark(node)

    # Comparisons

    def _job_before(self, left: JobState, right: JobState) -> bool:
        before: bool = rank_of_job(self._session, left) < rank_of_job(self._session, right)
        return before is not self._victims

    def _node_before(self, left: _Node, right: _Node) -> bool:
        before = comes_first(self._session, left.queue, self._rank(left), right.queue, self._rank(right))
        return before is not self._victims

    def _rank(self, node: _Node) -> Rank:
        leaf = node
        while leaf.jobs is None:
            assert leaf.children is not None
            leaf = leaf.children.peek()
        job = leaf.jobs.peek()
        if self._victims:
            return rank_of(self._session, node.queue, NO_AMOUNTS, self._with(leaf, job))
        asks, held = step_amounts(self._session, job, real=False), node.queue.allocated
        ranked = node.ranked
        if ranked is None or ranked[0] is not held or ranked[1] is not asks:
            ranked = node.ranked = (held, asks, rank_of(self._session, node.queue, asks))
        return ranked[2]

    def _with(self, leaf: _Node, job: JobState) -> Amounts:
        """Return what the gangs taken from the leaf and one more hold together."""
        held = self._session.layout.amounts(job.allocated)
        lost = self._lost.get(leaf.queue.name)
        return held if lost is None else (lost[0] + held[0], lost[1] + held[1], lost[2] + held[2])

    # The tree

    def _link(self, node: _Node) -> None:
        """Hang a new node, and every missing node above it, into the tree."""
        while not node.is_linked:
            node.is_linked = True
            if not node.queue.parent:
                self._roots.push(node)
                return
            parent = self._nodes.get(node.queue.parent)
            if parent is None:
                queue = self._session.queues[node.queue.parent]
                parent = self._nodes[queue.name] = _Node(queue, None, Heap(self._node_before))
            assert parent.children is not None
            node.parent = parent
            parent.children.push(node)
            node = parent

    def _top(self, heap: Heap[_Node]) -> _Node:
        while heap.peek().is_dirty:
            node = heap.peek()
            heap.fix_top()
            node.is_dirty = False
        return heap.peek()

    def _after_pop(self, node: _Node) -> None:
        while not len(node):
            (
                node.parent.children if node.parent is not None and node.parent.children is not None else self._roots
            ).pop()
            del self._nodes[node.queue.name]
            if node.parent is None:
                return
            node = node.parent
        self._mark(node)

    @staticmethod
    def _mark(node: _Node) -> None:
        current: _Node | None = node
        while current is not None:
            current.is_dirty = True
            current = current.parent


class SortedJobs:
    """Gangs of one queue in order: what a heap of them comes to as long as none moves while it waits."""

    def __init__(self, session: Session, jobs: Iterable[JobState]) -> None:
        self._session = session
        self._jobs = list(jobs)
        self._next = 0

    def __len__(self) -> int:
        return len(self._jobs) - self._next

    def peek(self) -> JobState:
        return self._jobs[self._next]

    def pop(self) -> JobState:
        self._next += 1
        return self._jobs[self._next - 1]

    def push(self, job: JobState) -> None:
        insort(self._jobs, job, lo=self._next, key=lambda other: rank_of_job(self._session, other))


def rank_of_job(session: Session, job: JobState) -> Rank:
    """Return the gang's sort key in its queue, kept until one of its tasks changes."""
    if job.rank is None:
        job.rank = session.job_order(job)
    return job.rank


def takes_part(session: Session, job: JobState, selection: Selection) -> bool:
    """Whether an action looks at the gang at all."""
    if selection.only_ready and not job.is_ready:
        return False
    if selection.only_pending and not job.pending:
        return False
    if selection.only_preemptible and not job.is_preemptible:
        return False
    if selection.only_active and not job.active_allocated:
        return False
    if not session.is_queue_usable(job):
        return False
    if selection.outside_preemption_delay:
        end = delay_end(job)
        if end is not None and session.as_of < end:
            _note_delay(job, end)
            return False
    return True


def delay_end(job: JobState) -> float | None:
    """Return when the gang may cause evictions, ``None`` when nothing holds it back."""
    delay = job.podgroup.preemption_delay
    if not delay or delay <= 0:
        return None
    return max(job.created, job.last_eviction or 0.0) + delay


def _note_delay(job: JobState, end: float) -> None:
    if any(error.reason == DELAY_REASON for error in job.errors):
        return
    when = datetime.fromtimestamp(int(end), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    job.add_error(
        DELAY_REASON,
        f"Workload is within its preemption delay window ({go_duration(job.podgroup.preemption_delay or 0)}) "
        f"and may not trigger evictions before {when}",
    )


def go_duration(seconds: float) -> str:
    """Return a duration as Go prints it: 10m0s, 1h0m0s, 1.5s."""
    whole, part = divmod(seconds, 60)
    hours, minutes = divmod(int(whole), 60)
    text = f"{part:.9f}".rstrip("0").rstrip(".")
    if hours:
        return f"{hours}h{minutes}m{text}s"
    return f"{minutes}m{text}s" if minutes else f"{text}s"
