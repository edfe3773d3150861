"""Where one PodGang stands before the scheduler: pods missing, gated and why, ready and without a PodGroup.

Gates and bindings are read from the pods: PodClique counts gates that are long gone, and a PodGang's phase stays
Pending for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from gangdash.engine.chain.components import whole
from gangdash.engine.chain.index import alive, last_seen
from gangdash.engine.chain.joins import Chain, references
from gangdash.engine.chain.looker import Looker
from gangdash.engine.chain.result import Standing
from gangdash.engine.model.meta import Condition
from gangdash.engine.model.observed import ObservedObject
from gangdash.engine.model.pod import Pod

GROVE_GATE = "grove.io/podgang-pending-creation"
_CREATE_FAILED = frozenset({"PodCreateFailed", "FailedCreate"})
SHOWN = 3


class Gang(Looker):
    """One PodGang with what belongs to it."""

    def __init__(self, chain: Chain, podgang: ObservedObject) -> None:
        super().__init__(chain, podgang)
        self._podgang = podgang
        self._pods = alive(chain.members(podgang))
        self._gated = [pod for pod in self._pods if pod.gates and not pod.node_name]

    def standing(self) -> Standing | None:
        """Return the first stage before the scheduler that the gang has not passed, None when it is handed over."""
        probes: Sequence[Callable[[], Standing | None]] = (
            self._pods_missing,
            self._foreign_gate,
            self._incomplete,
            self._base,
            self._late_gate,
            self._no_podgroup,
        )
        return next((found for probe in probes if (found := probe()) is not None), None)

    # S8

    def _pods_missing(self) -> Standing | None:
        if not self._chain.snapshot.was_read("PodClique"):
            return None
        for name, _, clique in self._chain.cliques_of(self._podgang):
            if clique is None:
                return self._at(
                    "S6", f"PodClique/{self._podgang.meta.namespace}/{name}", "metadata.name",
                    f"PodClique {name} does not exist", since=self._podgang.meta.created,
                    deadline=self._deadlines.children, wanted=name, found="missing",
                )  # fmt: skip
            short = self._short(clique)
            if short is not None:
                return short
        return None

    def _short(self, clique: ObservedObject) -> Standing | None:
        desired = whole(clique.facts.get("spec.replicas"))
        own = self._podgang.meta.name
        exist = [
            pod for pod in alive(self._chain.pods_of(clique)) if pod.meta.labels.get("grove.io/podgang", own) == own
        ]
        if desired is None or len(exist) >= desired or not self._chain.snapshot.was_read("Pod"):
            return None
        error = last_error(clique)
        text = error or self._create_failure(clique)
        return self._at(
            "S8",
            clique.ref,
            "status.lastErrors" if error else "spec.replicas",
            f"{len(exist)} of {desired} pods exist" + (f": {text}" if text else ""),
            since=clique.meta.created,
            deadline=self._deadlines.pods,
            wanted=f"{desired} pods",
            found=f"{len(exist)} pods",
            has_answered=bool(text),
        )

    def _create_failure(self, clique: ObservedObject) -> str:
        meta = clique.meta
        events = self._chain.events(clique.kind, meta.namespace, meta.name, meta.uid)
        failed = [event for event in events if event.reason in _CREATE_FAILED]
        return failed[-1].message if failed else ""

    # S9 to S14

    def _since_gated(self) -> float | None:
        return max((pod.meta.created for pod in self._gated if pod.meta.created is not None), default=None)

    def _foreign_gate(self) -> Standing | None:
        for pod in self._gated:
            foreign = [gate for gate in pod.gates if gate != GROVE_GATE]
            if foreign:
                return self._at(
                    "S11", f"Pod/{pod.key}", "spec.schedulingGates", f"{pod.meta.name} has the gate {foreign[0]}",
                    since=self._since_gated(), wanted="no gate", found=foreign[0],
                )  # fmt: skip
        return None

    def _incomplete(self) -> Standing | None:
        if not self._gated:
            return None
        initialized = condition(self._podgang, "Initialized")
        listed = {name for _, name in references(self._podgang)}
        unlisted = [pod.meta.name for pod in self._gated if pod.meta.name not in listed]
        if initialized is not None and initialized.status != "True":
            return self._gate_step("status.conditions[Initialized]", "is not initialized", initialized)
        if unlisted and _lists_deleted(listed, self._chain.members(self._podgang)):
            return self._at(
                "S14", self._podgang.ref, "spec.podgroups[].podReferences",
                f"lists pods that are gone, and not {_some(unlisted)}", since=self._since_gated(),
                deadline=self._deadlines.gate, wanted=_some(unlisted), found="pods of before",
            )  # fmt: skip
        if unlisted:
            return self._gate_step("spec.podgroups[].podReferences", f"does not list {_some(unlisted)}", None)
        return None

    def _gate_step(self, field: str, problem: str, found: Condition | None) -> Standing:
        return self._at(
            "S9", self._podgang.ref, field, problem, since=self._since_gated(), deadline=self._deadlines.gate,
            wanted="True" if found else "every pod", found=found.status if found else "some pods",
        )  # fmt: skip

    def _base(self) -> Standing | None:
        if not self._gated:
            return None
        for name in self._chain.base_names(self._podgang):
            base = self._chain.object("PodGang", self._podgang.meta.namespace, name)
            if base is None:
                return self._at(
                    "S12", self._podgang.ref, "dependsOn" if name.startswith("epoch ") else "grove.io/base-podgang",
                    f"waits for {name}, which has no PodGang", since=self._since_gated(), deadline=0.0,
                    wanted=name, found="missing",
                )  # fmt: skip
            short = next(unplaced(self._chain, base), None)
            if short is not None:
                return self._at(
                    "S10", base.ref, "pods of its cliques", f"{name} is not placed: {short[0]} has {short[1]} of "
                    f"{short[2]} pods on nodes", since=self._since_gated(), wanted=str(short[2]), found=str(short[1]),
                )  # fmt: skip
        return None

    def _late_gate(self) -> Standing | None:
        if not self._gated:
            return None
        for name in self._chain.base_names(self._podgang):
            deadlock = self._deadlock(name)
            if deadlock is not None:
                return deadlock
        pod = self._gated[0]
        return self._at(
            "S13", f"Pod/{pod.key}", "spec.schedulingGates", f"{_pods(len(self._gated))} still gated by {GROVE_GATE}",
            since=self._since_gated(), deadline=self._deadlines.gate, wanted="no gate", found=GROVE_GATE,
        )  # fmt: skip

    def _deadlock(self, name: str) -> Standing | None:
        """S14: the base is placed and cannot start, as it waits for nodes that only the gated pods would bring."""
        base = self._chain.object("PodGang", self._podgang.meta.namespace, name)
        members = alive(self._chain.members(base)) if base is not None else []
        short = short_compute_domain(self._chain, self._podgang.meta.namespace, members)
        if short is None:
            return None
        domain, wanted, have = short
        return self._at(
            "S14", f"ComputeDomain/{self._podgang.meta.namespace}/{domain}", "spec.numNodes",
            f"ComputeDomain {domain} counts to {wanted} nodes and has {have}; the others wait for it",
            since=self._since_gated(), deadline=0.0, wanted=str(wanted), found=str(have), has_answered=True,
        )  # fmt: skip

    # S15

    def _no_podgroup(self) -> Standing | None:
        waiting = [pod for pod in self._pods if not pod.node_name]
        if not waiting or not self._chain.snapshot.was_read("PodGroup") or self._chain.podgroups_of(self._podgang):
            return None
        if any(_joined(self._chain, pod) for pod in waiting):
            return None
        meta = self._podgang.meta
        failed = [
            event
            for event in self._chain.events("PodGang", meta.namespace, meta.name, meta.uid)
            if event.reason in {"KAIBackendMappingFailed", "KAIBackendSyncFailed"}
        ]
        problem = "no PodGroup was made of it" + (f": {failed[-1].message}" if failed else "")
        since = last_seen(failed[-1]) if failed else max((pod.meta.created or 0.0 for pod in waiting), default=None)
        return self._at(
            "S15", self._podgang.ref, "PodGroup owned by it", problem, since=since, deadline=self._deadlines.podgroup,
            wanted="one PodGroup", found="none", has_answered=bool(failed),
        )  # fmt: skip


def _joined(chain: Chain, pod: Pod) -> bool:
    name = pod.meta.annotations.get("pod-group-name")
    return bool(name) and f"{pod.meta.namespace}/{name}" in chain.podgroups


def _lists_deleted(listed: set[str], members: Sequence[Pod]) -> bool:
    """Whether a PodGang lists as many pods as it has and none of them is there any more."""
    return bool(listed) and len(listed) >= len(members) and not listed & {pod.meta.name for pod in alive(members)}


def short_compute_domain(chain: Chain, namespace: str, pods: Sequence[Pod]) -> tuple[str, int, int] | None:
    """Return a compute domain that counts to more nodes than its pods are on: name, wanted, have."""
    templates = {claim.template for pod in pods for claim in pod.claims if claim.template}
    have = len({pod.node_name for pod in alive(pods) if pod.node_name})
    for domain in chain.objects("ComputeDomain") if templates else ():
        template = domain.facts.get("spec.channel.resourceClaimTemplate.name")
        wanted = whole(domain.facts.get("spec.numNodes"))
        if domain.meta.namespace == namespace and template in templates and wanted is not None and have < wanted:
            return domain.meta.name, wanted, have
    return None


def unplaced(chain: Chain, podgang: ObservedObject) -> Iterator[tuple[str, int, int]]:
    """Yield each clique of a PodGang with fewer pods on nodes than its minimum: name, have, need."""
    members = alive(chain.members(podgang))
    for name, least, clique in chain.cliques_of(podgang):
        need = least if least is not None else whole(clique.facts.get("spec.minAvailable")) if clique else None
        have = sum(bool(pod.node_name) for pod in members if _is_of(chain, pod, name))
        if need is not None and have < need:
            yield name, have, need


def _is_of(chain: Chain, pod: Pod, clique: str) -> bool:
    label = pod.meta.labels.get("grove.io/podclique")
    if label is not None:
        return label == clique
    found = chain.clique_of(pod)
    return found is not None and found.meta.name == clique


def condition(item: ObservedObject, type_: str) -> Condition | None:
    return next((found for found in item.conditions if found.type == type_), None)


def last_error(item: ObservedObject) -> str:
    """Return the latest error of a Grove object, with its code; it may be old, as errors are cleared late."""
    errors = item.facts.get("status.lastErrors") or ()
    if not errors:
        return ""
    latest = max(errors, key=lambda error: str(error.get("observedAt", "")))
    return " ".join(str(latest[key]) for key in ("code", "description") if latest.get(key))


def _pods(count: int) -> str:
    return f"{count} pod is" if count == 1 else f"{count} pods are"


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(sorted(names)[:SHOWN])
    return shown if len(names) <= SHOWN else f"{shown} and {len(names) - SHOWN} more"
