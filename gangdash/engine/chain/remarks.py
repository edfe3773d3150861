"""What is wrong with a workload although its gangs were handed over: S19, S24, S25 and S28 to S31.

Each remark names the object and field that prove it. A promise is checked, not believed: a topology that the set asks
for and its PodGroups do not carry, a replica spread over nodes that are one machine, a status that says otherwise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from gangdash.engine.chain.components import components_of, whole
from gangdash.engine.chain.gangs import condition
from gangdash.engine.chain.index import COMPONENT_LABEL, SCALING_GROUP_LABEL, alive, controller, last_seen
from gangdash.engine.chain.joins import Chain
from gangdash.engine.chain.looker import Looker
from gangdash.engine.chain.result import Standing
from gangdash.engine.chain.times import moment
from gangdash.engine.model.observed import ObservedObject
from gangdash.engine.model.pod import Pod

_DELETED_REPLICA = frozenset({
    "PodCliqueSetReplicaDeleteSuccessful", "PodCliqueScalingGroupReplicaDeleteSuccessful",
})  # fmt: skip
_REPLICA_LABEL = "grove.io/podcliquescalinggroup-replica-index"
_SET_REPLICA_LABEL = "grove.io/podcliqueset-replica-index"
_DISCOVERY_LABEL = "nvidia.com/dynamo-discovery-backend"


def remarks_of(chain: Chain, top: ObservedObject) -> list[Standing]:
    """Return what is wrong beside the first stage, in the order of stages."""
    return sorted(_Remarks(chain, top).all(), key=lambda item: (int(item.stage[1:]), item.proof))


class _Remarks(Looker):
    def __init__(self, chain: Chain, top: ObservedObject) -> None:
        super().__init__(chain, top)
        self._top = top
        self._is_graph = top.kind == "DynamoGraphDeployment"
        self._sets = chain.sets_of(top) if self._is_graph else [top]

    def all(self) -> Iterator[Standing]:
        for clique_set in self._sets:
            yield from self._wrong_groups(clique_set)
            yield from self._terminated(clique_set)
            yield from self._rollout(clique_set)
            yield from self._topology(clique_set)
            yield from self._shared_nodes(clique_set)
        if self._is_graph:
            yield from self._status()
            yield from self._not_discovered()

    def _pods(self, clique_set: ObservedObject) -> list[Pod]:
        """Return the living pods of a set, found through its cliques."""
        cliques = self._chain.of_set("PodClique", clique_set)
        return alive(pod for clique in cliques for pod in self._chain.pods_of(clique))

    def _wrong_groups(self, clique_set: ObservedObject) -> Iterator[Standing]:
        """S19: PodGroups of single pods although a PodGang holds them; S15: two PodGroups for one PodGang."""
        for podgang in self._chain.of_set("PodGang", clique_set):
            groups = self._chain.podgroups_of(podgang)
            if len(groups) > 1:
                names = ", ".join(group.meta.name for group in groups)
                yield self._at("S19", podgang.ref, "PodGroups owned by it", f"{len(groups)} PodGroups of it: {names}")
            single = [pod for pod in self._chain.members(podgang) if self._is_alone(pod)]
            if not groups and single:
                proof = f"PodGroup/{single[0].meta.namespace}/{single[0].meta.annotations['pod-group-name']}"
                yield self._at("S19", proof, "spec.minMember", f"{len(single)} pods are each a gang of their own")

    def _is_alone(self, pod: Pod) -> bool:
        name = pod.meta.annotations.get("pod-group-name", "")
        group = self._chain.podgroups.get(f"{pod.meta.namespace}/{name}")
        ref = controller(group.meta) if group is not None else None
        return group is not None and not group.sub_groups and group.min_member in {None, 1} and (
            ref is not None and ref.kind in {"Pod", "DynamoGraphDeployment"}
        )  # fmt: skip

    def _terminated(self, clique_set: ObservedObject) -> Iterator[Standing]:
        """S24: Grove took a gang down because it stayed below its minimum."""
        for item in (clique_set, *self._chain.of_set("PodCliqueScalingGroup", clique_set)):
            found = condition(item, "GangTerminationInProgress")
            if found is not None and found.status == "True":
                text = found.message or "the gang is being terminated"
                yield self._at("S24", item.ref, "status.conditions[GangTerminationInProgress]", text, since=found.since)
            events = self._chain.events(item.kind, item.meta.namespace, item.meta.name, item.meta.uid)
            deleted = [event for event in events if event.reason in _DELETED_REPLICA]
            if deleted:
                text, at = deleted[-1].message or "a replica was deleted", last_seen(deleted[-1])
                yield self._at("S24", item.ref, f"Event {deleted[-1].reason}", text, since=at)

    def _rollout(self, clique_set: ObservedObject) -> Iterator[Standing]:
        """S25: an update that began long ago and has not ended."""
        began = moment(clique_set.facts.get("status.updateProgress.updateStartedAt"))
        if began is None or clique_set.facts.get("status.updateProgress.updateEndedAt"):
            return
        age = self._chain.as_of - began
        if age > self._deadlines.rollout:
            done, all_ = (
                whole(clique_set.facts.get(f"status.updateProgress.{name}PodCliquesCount"))
                for name in ("updated", "total")
            )
            counts = f": {done} of {all_} PodCliques are updated" if done is not None and all_ is not None else ""
            field = "status.updateProgress.updateEndedAt"
            problem = f"an update has not ended{counts}"
            yield self._at("S25", clique_set.ref, field, problem, since=began, deadline=self._deadlines.rollout)

    def _topology(self, clique_set: ObservedObject) -> Iterator[Standing]:
        """S29: the set asks for a topology that its gangs do not carry."""
        found = condition(clique_set, "TopologyLevelsUnavailable")
        if found is not None and found.status != "False":
            field = "status.conditions[TopologyLevelsUnavailable]"
            yield self._at("S29", clique_set.ref, field, found.message or found.reason, since=found.since)
        facts = clique_set.facts
        wanted = [
            facts.get(f"spec.template.topologyConstraint.{key}")
            for key in ("pack.required", "packDomain", "pack.preferred")
        ]
        if not any(wanted):
            return
        for podgang in self._chain.of_set("PodGang", clique_set):
            for group in self._chain.podgroups_of(podgang):
                parts = [group.topology, *(sub.topology for sub in group.sub_groups)]
                if not any(part is not None and part.topology for part in parts):
                    domain = next(str(value) for value in wanted if value)
                    text = f"the set asks for one {domain}, the PodGroup names no topology"
                    yield self._at("S29", f"PodGroup/{group.key}", "spec.topologyConstraint", text)

    def _shared_nodes(self, clique_set: ObservedObject) -> Iterator[Standing]:
        """S30: pods that stand for nodes of one replica are on one machine."""
        spans = self._spanning()
        replicas: dict[tuple[str, str, str], list[Pod]] = defaultdict(list)
        for pod in self._pods(clique_set):
            labels = pod.meta.labels
            if pod.node_name and labels.get(COMPONENT_LABEL, "").lower() in spans and SCALING_GROUP_LABEL in labels:
                key = (labels[SCALING_GROUP_LABEL], labels.get(_SET_REPLICA_LABEL, ""), labels.get(_REPLICA_LABEL, ""))
                replicas[key].append(pod)
        for (group, _, replica), pods in sorted(replicas.items()):
            nodes = {pod.node_name for pod in pods}
            if len(nodes) < len(pods):
                text = f"{len(pods)} nodes of replica {replica or '0'} of {group} are {len(nodes)} machines"
                yield self._at("S30", f"Pod/{pods[0].key}", "spec.nodeName", text)

    def _spanning(self) -> frozenset[str]:
        if not self._is_graph:
            return frozenset()
        return frozenset(part.name.lower() for part in components_of(self._top) if part.nodes > 1)

    def _status(self) -> Iterator[Standing]:
        """S28: every pod is ready and the graph does not say so."""
        ready = condition(self._top, "Ready")
        if ready is None or ready.status == "True" or ready.since is None:
            return
        pods = [pod for clique_set in self._sets for pod in self._pods(clique_set)]
        wanted = sum(
            whole(clique.facts.get("spec.replicas")) or 0
            for clique_set in self._sets
            for clique in self._chain.of_set("PodClique", clique_set)
        )
        if not pods or len(pods) < wanted or not all(is_ready(pod) for pod in pods):
            return
        latest = max((found.since or 0.0) for pod in pods if (found := pod.condition("Ready")) is not None)
        if self._chain.as_of - max(latest, ready.since) > self._deadlines.status:
            text = f"all {len(pods)} pods are ready, Ready is {ready.status} ({ready.reason})"
            field, deadline = "status.conditions[Ready]", self._deadlines.status
            yield self._at("S28", self._top.ref, field, text, since=latest, deadline=deadline)

    def _not_discovered(self) -> Iterator[Standing]:
        """S31: workers that are ready and have not announced themselves."""
        chain = self._chain
        if not chain.snapshot.was_read("DynamoWorkerMetadata"):
            return
        for clique_set in self._sets:
            for pod in self._pods(clique_set):
                if pod.meta.labels.get(_DISCOVERY_LABEL) != "kubernetes" or not self._is_worker(pod):
                    continue
                ready = pod.condition("Ready")
                since = ready.since if ready is not None else None
                late = since is not None and chain.as_of - since > self._deadlines.discovery
                if late and chain.object("DynamoWorkerMetadata", pod.meta.namespace, pod.meta.name) is None:
                    text = f"{pod.meta.name} is ready and has no DynamoWorkerMetadata"
                    field, deadline = "DynamoWorkerMetadata of its name", self._deadlines.discovery
                    yield self._at("S31", f"Pod/{pod.key}", field, text, since=since, deadline=deadline)
                    return

    def _is_worker(self, pod: Pod) -> bool:
        kind = pod.meta.labels.get("nvidia.com/dynamo-component-type", "")
        return is_ready(pod) and kind in {"worker", "prefill", "decode"}


def is_ready(pod: Pod) -> bool:
    found = pod.condition("Ready")
    return pod.phase == "Running" and found is not None and found.status == "True"
