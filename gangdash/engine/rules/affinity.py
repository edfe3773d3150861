"""Inter-pod affinity and anti-affinity: which topology domains may, must not or would rather host a pod?

Keeps the pods placed on each node in step with the session (a pod that is being evicted still counts, as
upstream). Mirrors the InterPodAffinity plugin of Kubernetes 1.35 as KAI d5bc503a drives it
(pkg/scheduler/plugins/podaffinity, k8s_internal/predicates): raw scores without normalisation, weight 0
for required terms of placed pods. matchLabelKeys are not read: the API server has merged them into the
selector by the time a pod is served.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from gangdash.engine.model import digest
from gangdash.engine.model.meta import Meta
from gangdash.engine.model.node import Node
from gangdash.engine.model.pod import Pod
from gangdash.engine.model.selectors import PodAffinityTerm, PreferredPodTerm
from gangdash.engine.rules.matching import selector_matches
from gangdash.engine.session import NodeState, Session, TaskState

WEIGHT = 1_000_000
"""What one point of inter-pod preference is worth beside the other node scores."""

AFFINITY_UNMET = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY_UNMET = "node(s) didn't match pod anti-affinity rules"
EXISTING_ANTI_AFFINITY_UNMET = "node(s) didn't satisfy existing pods anti-affinity rules"

Pair = tuple[str, str]
"""A topology key and its value on a node."""


@dataclass(slots=True)
class AffinityState:
    """What one pod meets at one moment: how many matching pods each topology pair holds."""

    pod: Pod
    existing_anti: dict[Pair, int] = field(default_factory=dict)
    affinity: dict[Pair, int] = field(default_factory=dict)
    anti: dict[Pair, int] = field(default_factory=dict)
    self_match: bool = False


def required_terms(pod: Pod) -> tuple[PodAffinityTerm, ...]:
    return pod.affinity.pod_required if pod.affinity is not None else ()


def required_anti_terms(pod: Pod) -> tuple[PodAffinityTerm, ...]:
    return pod.affinity.anti_required if pod.affinity is not None else ()


def preferred_terms(pod: Pod) -> tuple[tuple[int, PodAffinityTerm], ...]:
    """Return the preferred terms with their weights, anti-affinity ones negative."""
    if pod.affinity is None:
        return ()
    return (*_weighted(pod.affinity.pod_preferred, 1), *_weighted(pod.affinity.anti_preferred, -1))


def _outward_terms(pod: Pod) -> list[PodAffinityTerm]:
    """Return the terms that matter to other pods: what it requires of them to be there is its own affair."""
    return [*required_anti_terms(pod), *(term for _, term in preferred_terms(pod))]


def _weighted(terms: Sequence[PreferredPodTerm], sign: int) -> list[tuple[int, PodAffinityTerm]]:
    return [(sign * t.weight, t.term) for t in terms]


def has_terms(pod: Pod) -> bool:
    affinity = pod.affinity
    return affinity is not None and bool(
        affinity.pod_required or affinity.anti_required or affinity.pod_preferred or affinity.anti_preferred
    )


@dataclass(slots=True)
class Remembered:
    """What the first look at a task settled for the rest of the session, by the task's uid, as in the scheduler."""

    states: dict[str, AffinityState] = field(default_factory=dict)
    free: set[str] = field(default_factory=set)
    """Tasks that no term reaches: nothing is asked for them again."""
    indifferent: set[str] = field(default_factory=set)
    """Tasks that nothing prefers anything for."""


def remembered(session: Session) -> Remembered:
    found = session.memo.get(Remembered)
    if not isinstance(found, Remembered):
        found = session.memo[Remembered] = Remembered()
    return found


def install(session: Session) -> None:
    """Let preferences between pods score the nodes."""
    session.hooks.node_scorers.append(PodAffinityScore(affinity_index(session), remembered(session)))


def affinity_index(session: Session) -> PodAffinityIndex:
    """Return the session's index, made and filled on first use; it listens only where some pod has such a term."""
    for listener in session.listeners:
        if isinstance(listener, PodAffinityIndex):
            return listener
    nodes = {name: state.node for name, state in session.nodes.items()}
    index = PodAffinityIndex(nodes, session.snapshot.namespaces, (t.pod for t in session.tasks.values()))
    if index.active:
        session.listeners.append(index)
        session.hooks.tells_apart.append(lambda task: index.touches(task.pod))
        for node in session.nodes.values():
            for placed in node.placed.values():
                index.add(placed.task.pod, node.name)
    return index


class PodAffinityScore:
    """Scores nodes by raw inter-pod preference.

    A task that nothing prefers anything for is not looked at again in the session, as in the scheduler.
    """

    def __init__(self, index: PodAffinityIndex, known: Remembered) -> None:
        self._index = index
        self._known = known
        self._scores: dict[Pair, int] = {}

    def prepare(self, task: TaskState, nodes: Sequence[NodeState]) -> None:
        self._scores = {}
        if not self._index.active or task.uid in self._known.indifferent:
            return
        scores = self._index.scores(task.pod)
        if scores is None:
            self._known.indifferent.add(task.uid)
        else:
            self._scores = scores

    def score(self, task: TaskState, node: NodeState) -> float | None:
        return WEIGHT * pair_score(self._scores, node.node) if self._scores else 0


class PodAffinityIndex:
    """Pods by node, kept current by ``add`` and ``remove``; idle when no pod has such a term."""

    def __init__(self, nodes: Mapping[str, Node], namespaces: Iterable[Meta], pods: Iterable[Pod]) -> None:
        owners = [pod for pod in pods if has_terms(pod)]
        self.active = bool(owners)
        self._nodes = nodes
        self._namespace_labels = {meta.name: meta.labels for meta in namespaces}
        self._placed: dict[str, dict[str, Pod]] = {}
        self._outward = list({(digest.text(term), pod.meta.namespace): (term, pod) for pod in owners
                              for term in _outward_terms(pod)}.values())  # fmt: skip
        """Each term by which a pod of the session, once placed, may matter to others, with one owner of it."""

    def touches(self, pod: Pod) -> bool:
        """Whether its own terms, or those of any pod of the session, may tell nodes apart for the pod."""
        return has_terms(pod) or any(self._term_matches(term, owner, pod) for term, owner in self._outward)

    def add(self, pod: Pod, node: str) -> None:
        if self.active:
            self._placed.setdefault(node, {})[pod.key] = pod

    def remove(self, pod: Pod, node: str) -> None:
        if self.active:
            self._placed.get(node, {}).pop(pod.key, None)

    def node_added(self, task: TaskState, node: NodeState) -> None:
        self.add(task.pod, node.name)

    def node_removed(self, task: TaskState, node: NodeState) -> None:
        self.remove(task.pod, node.name)

    def allocated(self, task: TaskState, node: NodeState) -> None:
        """Affinity goes by what is on a node, not by who holds what."""

    def released(self, task: TaskState, node: NodeState) -> None:
        """Affinity goes by what is on a node, not by who holds what."""

    def pre_filter(self, pod: Pod) -> AffinityState | None:
        """Count matches for a pod; None when no term of it or of a placed pod is involved."""
        if not self.active:
            return None
        state = AffinityState(pod)
        state.self_match = self._matches_all(required_terms(pod), pod, pod)
        for node_name, placed in self._placed.items():
            labels = self._nodes[node_name].meta.labels
            for other in placed.values():
                self._count(state, other, labels)
        if not state.existing_anti and not required_terms(pod) and not required_anti_terms(pod):
            return None
        return state

    def _count(self, state: AffinityState, other: Pod, labels: Mapping[str, str]) -> None:
        pod = state.pod
        for term in required_anti_terms(other):
            if self._term_matches(term, other, pod):
                _bump(state.existing_anti, term.topology_key, labels)
        terms = required_terms(pod)
        if terms and self._matches_all(terms, pod, other):
            for term in terms:
                _bump(state.affinity, term.topology_key, labels)
        for term in required_anti_terms(pod):
            if self._term_matches(term, pod, other):
                _bump(state.anti, term.topology_key, labels)

    def failure(self, state: AffinityState, node: Node) -> str:
        """Return the reason against a node, empty when it passes: affinity, then anti, then existing pods' anti."""
        labels = node.meta.labels
        if not _affinity_met(state, labels):
            return AFFINITY_UNMET
        if any(state.anti.get((t.topology_key, labels.get(t.topology_key, "")), 0) > 0
               for t in required_anti_terms(state.pod) if t.topology_key in labels):  # fmt: skip
            return ANTI_AFFINITY_UNMET
        if any(labels.get(key) == value for key, value in state.existing_anti):
            return EXISTING_ANTI_AFFINITY_UNMET
        return ""

    def scores(self, pod: Pod) -> dict[Pair, int] | None:
        """Return the preference of each topology pair for a pod, None when nothing prefers anything."""
        if not self.active:
            return None
        own = preferred_terms(pod)
        out: dict[Pair, int] = {}
        for node_name, placed in self._placed.items():
            labels = self._nodes[node_name].meta.labels
            for other in placed.values():
                for weight, term in own:
                    if self._term_matches(term, pod, other):
                        _bump(out, term.topology_key, labels, weight)
                for weight, term in preferred_terms(other):
                    if self._term_matches(term, other, pod):
                        _bump(out, term.topology_key, labels, weight)
        return out or None

    def _matches_all(self, terms: Sequence[PodAffinityTerm], owner: Pod, other: Pod) -> bool:
        return bool(terms) and all(self._term_matches(t, owner, other) for t in terms)

    def _term_matches(self, term: PodAffinityTerm, owner: Pod, other: Pod) -> bool:
        """Return whether ``other`` is selected by a term that ``owner`` carries."""
        namespace = other.meta.namespace
        named = namespace in term.namespaces
        if not term.namespaces and term.namespace_selector is None:
            named = namespace == owner.meta.namespace
        if not named and not selector_matches(term.namespace_selector, self._namespace_labels.get(namespace, {})):
            return False
        return selector_matches(term.selector, other.meta.labels)


def pair_score(scores: Mapping[Pair, int], node: Node) -> int:
    labels = node.meta.labels
    return sum(weight for (key, value), weight in scores.items() if labels.get(key) == value)


def _bump(counts: dict[Pair, int], key: str, labels: Mapping[str, str], by: int = 1) -> None:
    value = labels.get(key)
    if value is not None:
        counts[key, value] = counts.get((key, value), 0) + by


def _affinity_met(state: AffinityState, labels: Mapping[str, str]) -> bool:
    """A first pod of a series that matches its own terms may go anywhere that has the topology keys."""
    terms = required_terms(state.pod)
    if any(t.topology_key not in labels for t in terms):
        return False
    if all(state.affinity.get((t.topology_key, labels[t.topology_key]), 0) > 0 for t in terms):
        return True
    return not state.affinity and state.self_match
