"""Where a DynamoGraphDeployment or PodCliqueSet stands: the first stage of S0 to S15 that it has not passed.

Follows the order in which the controllers work: Dynamo's operator, Grove's operator, the gangs one by one, the pod
grouper. What a gang meets once the scheduler has it (S16 and on) is the explanation's to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from gangdash.engine.chain.components import components_of, whole
from gangdash.engine.chain.gangs import Gang, condition, last_error
from gangdash.engine.chain.joins import Chain
from gangdash.engine.chain.looker import Looker
from gangdash.engine.chain.result import Standing
from gangdash.engine.model.observed import ObservedObject

ERROR_REASONS = frozenset({
    "failed_to_reconcile_the_resources", "no_multinode_orchestrator_available", "failed_to_initialize_worker_hash",
    "failed_to_migrate_worker_hash", "rolling_update_failed", "selected_workload_provider_unavailable",
    "unsupported_workload_provider",
})  # fmt: skip
"""Reasons of a graph's Ready condition that say that its operator gave up, not that it waits."""


def standing_of(chain: Chain, top: ObservedObject) -> Standing | None:
    """Return the first stage that a top object has not passed, None once all its gangs are handed to the scheduler."""
    looker = _TopLooker(chain, top)
    return next((found for probe in looker.probes() if (found := probe()) is not None), None)


def gang_standing_of(chain: Chain, podgang: ObservedObject) -> Standing | None:
    """Return the first stage before the scheduler that one PodGang has not passed."""
    return Gang(chain, podgang).standing()


class _TopLooker(Looker):
    """Looks at one top object."""

    def __init__(self, chain: Chain, top: ObservedObject) -> None:
        super().__init__(chain, top)
        self._top = top
        self._is_graph = top.kind == "DynamoGraphDeployment"
        self._sets = chain.sets_of(top) if self._is_graph else [top]

    def probes(self) -> Iterator[Callable[[], Standing | None]]:
        if self._is_graph:
            yield from (self._no_status, self._waits_by_design, self._failed, self._not_installed)
            yield self._no_set
        for clique_set in self._sets:
            yield from _SetLooker(self._chain, self._top, clique_set).probes()

    def _no_status(self) -> Standing | None:
        facts = self._top.facts
        if facts.get("status.state") or facts.get("status.observedGeneration") is not None or self._top.conditions:
            return None
        if self._sets or self._chain.children(self._top):
            return None
        return self._at(
            "S2", self._top.ref, "status", "it has no status at all", since=self._top.meta.created,
            deadline=self._deadlines.first_status, wanted="a status", found="none",
        )  # fmt: skip

    def _waits_by_design(self) -> Standing | None:
        ready = condition(self._top, "Ready")
        if ready is not None and ready.reason == "waiting_for_checkpoint":
            return self._at(
                "S4", self._top.ref, "status.conditions[Ready]", ready.message or ready.reason, since=ready.since
            )
        components = components_of(self._top)
        if components and all(component.replicas == 0 for component in components):
            return self._at(
                "S4", self._top.ref, "spec.components[].replicas", "every component has 0 replicas",
                since=self._top.meta.created, wanted="a replica", found="0",
            )  # fmt: skip
        return None

    def _failed(self) -> Standing | None:
        ready = condition(self._top, "Ready")
        reason = ready.reason if ready is not None and ready.status != "True" else ""
        if self._top.facts.get("status.state") != "failed" and reason not in ERROR_REASONS:
            return None
        text = (ready.message or ready.reason) if ready is not None else "its state is failed"
        return self._at(
            "S3", self._top.ref, "status.conditions[Ready]" if ready else "status.state", text,
            since=ready.since if ready else None, deadline=0.0, wanted="True", found=reason or "failed",
            has_answered=True,
        )  # fmt: skip

    def _not_installed(self) -> Standing | None:
        if self._sets or not _chooses_grove(self._top):
            return None
        missing = next((gap for gap in self._chain.snapshot.not_read if gap.kind == "PodCliqueSet"), None)
        if missing is None or missing.reason != "not served":
            return None
        return self._at(
            "S0", self._top.ref, "kind PodCliqueSet", "the cluster does not serve PodCliqueSet",
            since=self._top.meta.created, deadline=0.0, wanted="served", found="not served",
        )  # fmt: skip

    def _no_set(self) -> Standing | None:
        """S3: nothing was made of it, as far as all that could have been made was read."""
        if self._sets or self._chain.children(self._top):
            return None
        what = "PodCliqueSet" if self._chain.snapshot.was_read("PodCliqueSet") else "DynamoComponentDeployment"
        if _by_components(self._top):
            what = "DynamoComponentDeployment"
        if self._was_refused("PodCliqueSet", "DynamoComponentDeployment") or not self._chain.snapshot.was_read(what):
            return None
        return self._at(
            "S3", self._top.ref, "objects owned by it", f"no {what} was made of it", since=self._top.meta.created,
            deadline=self._deadlines.first_child, wanted=what, found="none",
        )  # fmt: skip

    def _was_refused(self, *kinds: str) -> bool:
        """Whether a kind is there and could not be read; one that a file leaves out says nothing either way."""
        reasons = {gap.kind: gap.reason for gap in self._chain.snapshot.not_read}
        return any(reasons.get(kind, "") not in {"", "not served", "not in the dump"} for kind in kinds)


class _SetLooker(Looker):
    """Looks at one PodCliqueSet on behalf of the top object."""

    def __init__(self, chain: Chain, top: ObservedObject, clique_set: ObservedObject) -> None:
        super().__init__(chain, top)
        self._set = clique_set

    def probes(self) -> Iterator[Callable[[], Standing | None]]:
        yield from (self._not_taken_up, self._migrating, self._children_missing)
        for podgang in self._chain.of_set("PodGang", self._set):
            yield Gang(self._chain, podgang).standing

    @property
    def _is_known(self) -> bool:
        return all(self._chain.snapshot.was_read(kind) for kind in ("PodClique", "PodCliqueScalingGroup"))

    def _cliques(self) -> Sequence[ObservedObject]:
        return self._chain.of_set("PodClique", self._set)

    def _groups(self) -> Sequence[ObservedObject]:
        return self._chain.of_set("PodCliqueScalingGroup", self._set)

    def _not_taken_up(self) -> Standing | None:
        replicas = whole(self._set.facts.get("spec.replicas"))
        if not self._is_known or self._cliques() or self._groups() or replicas == 0:
            return None
        if last_error(self._set):
            return None
        hashed = self._set.facts.get("status.currentGenerationHash")
        problem = "it is counted in its status, and has no children" if hashed else "nothing was made of it"
        return self._at(
            "S5", self._set.ref, "PodCliques owned by it", problem, since=self._set.meta.created,
            deadline=self._deadlines.first_child, wanted="PodCliques", found="none",
        )  # fmt: skip

    def _migrating(self) -> Standing | None:
        found = condition(self._set, "PodGangMigrationInProgress")
        if found is None or found.status != "True":
            return None
        return self._at(
            "S7", self._set.ref, "status.conditions[PodGangMigrationInProgress]",
            found.message or "its gangs are being migrated",
            since=found.since, deadline=self._deadlines.migration, wanted="False", found="True",
        )  # fmt: skip

    def _children_missing(self) -> Standing | None:
        if not self._is_known:
            return None
        for what, wanted, have in self._expected():
            if have < wanted:
                error = last_error(self._set)
                return self._at(
                    "S6", self._set.ref, "status.lastErrors" if error else f"{what}s owned by it",
                    f"{have} of {wanted} {what}s exist" + (f": {error}" if error else ""),
                    since=self._set.meta.created, deadline=self._deadlines.children, wanted=str(wanted),
                    found=str(have), has_answered=bool(error),
                )  # fmt: skip
        return None

    def _expected(self) -> Iterator[tuple[str, int, int]]:
        """Yield kind, how many there must be and how many there are, from the objects that are scaled themselves."""
        facts, groups = self._set.facts, self._groups()
        replicas = whole(facts.get("spec.replicas")) or 0
        templates = facts.get("spec.template.podCliqueScalingGroups") or ()
        grouped = {name for template in templates for name in template.get("cliqueNames") or ()}
        names = {clique.get("name") for clique in facts.get("spec.template.cliques") or ()}
        yield "PodCliqueScalingGroup", replicas * len(templates), len(groups)
        alone = [clique for clique in self._cliques() if not self._chain.scaling_group_of(clique)]
        yield "PodClique", replicas * len(names - grouped), len(alone)
        for group in groups:
            wanted = (whole(group.facts.get("spec.replicas")) or 0) * len(group.facts.get("spec.cliqueNames") or ())
            own = [clique for clique in self._cliques() if self._chain.scaling_group_of(clique) == group.meta.name]
            yield "PodClique", wanted, len(own)


def _chooses_grove(graph: ObservedObject) -> bool:
    """Whether a graph says that Grove carries it out; without a word its operator takes what is installed."""
    notes = graph.meta.annotations
    return notes.get("nvidia.com/workload-provider") == "grove" or notes.get("nvidia.com/enable-grove") == "true"


def _by_components(graph: ObservedObject) -> bool:
    notes = graph.meta.annotations
    return notes.get("nvidia.com/workload-provider") == "component" or notes.get("nvidia.com/enable-grove") == "false"
