"""Dynamic resource allocation: may a pod use its claims, and can a node give it the devices?

Keeps the claims' allocations in step with the session and picks devices first come, first served, as the
structured allocator of Kubernetes 1.35 does with no optional feature on (no alternatives, no admin access,
no device taints), which is how KAI d5bc503a calls it (pkg/scheduler/plugins/dynamicresources). Selectors go
through the small evaluator in ``cel``; an expression it does not understand is kept in ``not_modelled``.
Extended resources backed by a device class are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.model.dra import AllocatedDevice, Device, DeviceRequest, ResourceClaim, ResourceSlice
from gangdash.engine.model.node import Node
from gangdash.engine.model.pod import Pod, PodClaim
from gangdash.engine.model.selectors import NodeSelectorTerm, Requirement
from gangdash.engine.rules import cel
from gangdash.engine.rules.matching import any_node_term_matches
from gangdash.engine.session import Claims, JobState, NodeState, Session, TaskState
from gangdash.engine.statement.claims import is_gpu_name

MAX_CONSUMERS = 256
"""A claim may be reserved for this many pods (resource.k8s.io, ResourceClaimReservedForMaxSize)."""
QUEUE_LABEL = "kai.scheduler/queue"
"""Printed in the message whatever the configured key is."""

DeviceKey = tuple[str, str, str]
"""Driver, pool, device."""


@dataclass(frozen=True, slots=True)
class Allocation:
    devices: tuple[AllocatedDevice, ...]
    terms: tuple[NodeSelectorTerm, ...] | None = None


@dataclass(frozen=True, slots=True)
class ClaimState:
    """A claim at one moment of the session; replaced, never changed."""

    claim: ResourceClaim
    allocation: Allocation | None
    reserved: frozenset[str]


class AllocationError(Exception):
    """The allocator cannot even try; the text ends up in the node's reason."""


def claim_name(pod_claim: PodClaim) -> str | None:
    """Return the name of the ResourceClaim behind a pod's claim; None while a template has made none."""
    return pod_claim.claim if pod_claim.claim is not None else pod_claim.resolved


def _missing_name(pod: Pod, pod_claim: PodClaim) -> str:
    return f"no resource claim name found for pod {pod.key} and claim reference {pod_claim.name}"


def install(session: Session) -> None:
    """Hang the claims into a session; a cluster whose claims were not read refuses nothing for them."""
    if not session.snapshot.was_read("ResourceClaim"):
        return
    if not any(task.pod.claims for task in session.tasks.values()):
        return
    listener = ClaimListener(session)
    session.listeners.append(listener)
    session.hooks.pre_predicates.append(listener.pre_filter)
    session.hooks.predicates.append(listener.failures)
    session.hooks.all_failures.append(listener.failures)


class ClaimListener:
    """Joins the claims to a session's hooks and statements."""

    def __init__(self, session: Session) -> None:
        self.rules = ClaimRules(session.snapshot, session.params.queue_label_key)
        self._session = session

    def pre_filter(self, task: TaskState, job: JobState) -> str:
        return self.rules.pre_filter(task.pod, job.queue)

    def failures(self, task: TaskState, job: JobState, node: NodeState) -> tuple[str, ...]:
        reason = self.rules.failure(task.pod, node.node)
        for part in sorted(self.rules.not_modelled):
            noted = self._session.not_modelled.setdefault(job.key, [])
            if part not in noted:
                noted.append(part)
        return (reason,) if reason else ()

    def allocated(self, task: TaskState, node: NodeState) -> None:
        if task.pod.claims:
            task.claims = self.rules.allocate(task.pod, node.node, task.claims)

    def released(self, task: TaskState, node: NodeState) -> None:
        if task.pod.claims:
            task.claims = self.rules.release(task.pod, task.claims)

    def node_added(self, task: TaskState, node: NodeState) -> None:
        """Claims go by who holds what, not by what is on a node."""

    def node_removed(self, task: TaskState, node: NodeState) -> None:
        """Claims go by who holds what, not by what is on a node."""


class ClaimRules:
    """The claims of a session and the devices behind them."""

    def __init__(self, snapshot: ClusterSnapshot, queue_label_key: str) -> None:
        self._states = {c.meta.key: _initial(c) for c in snapshot.resource_claims}
        self._classes = {c.meta.name: c for c in snapshot.device_classes}
        self._slices = sorted(snapshot.resource_slices, key=lambda s: (s.driver, s.pool, s.meta.name))
        self._queue_label_key = queue_label_key
        self._terms = {s.allocation.devices: s.allocation.terms for s in self._states.values() if s.allocation}
        """Which nodes reach a set of allocated devices: tasks remember the devices alone."""
        self.not_modelled: set[str] = set()

    def state(self, namespace: str, name: str) -> ClaimState | None:
        return self._states.get(f"{namespace}/{name}")

    def pre_filter(self, pod: Pod, queue: str) -> str:
        """Return why the pod's claims rule it out everywhere, empty when they do not."""
        for pod_claim in pod.claims:
            error = self._claim_error(pod, pod_claim, queue)
            if error:
                return error
        return ""

    def _claim_error(self, pod: Pod, pod_claim: PodClaim, queue: str) -> str:
        name = claim_name(pod_claim)
        if name is None:
            return _missing_name(pod, pod_claim)
        key = f"{pod.meta.namespace}/{name}"
        state = self._states.get(key)
        if state is None:
            return f'failed to get resource claim {key}: resourceclaim.resource.k8s.io "{name}" not found'
        if len(state.reserved) >= MAX_CONSUMERS:
            return f"resource claim {key} has reached its maximum number of consumers ({MAX_CONSUMERS})"
        error = self._queue_error(pod_claim, state.claim, queue)
        if error:
            return f"pod {pod.key} cannot be scheduled: {error}"
        if state.allocation is not None:
            return ""
        for request in state.claim.requests:
            if not request.alternatives and request.device_class not in self._classes:
                return f"device class {request.device_class} does not exist for claim {key} request {request.name}"
        return ""

    def _queue_error(self, pod_claim: PodClaim, claim: ResourceClaim, queue: str) -> str:
        """A GPU claim that is not made per pod must carry the label of the gang's queue."""
        if pod_claim.template is not None or not is_gpu_claim(claim):
            return ""
        label = claim.meta.labels.get(self._queue_label_key, "")
        shared = f"DRA claim {claim.meta.name} is a shared GPU claim"
        if not label:
            return f"{shared} but does not have a queue label ({QUEUE_LABEL})"
        if label != queue:
            return f"{shared} with wrong queue label (expected queue: {queue}, claim queue label: {label})"
        return ""

    def failure(self, pod: Pod, node: Node) -> str:
        """Return why the node cannot give the pod its devices, empty when it can."""
        wanted = []
        for pod_claim in pod.claims:
            name = claim_name(pod_claim)
            if name is None:
                return _missing_name(pod, pod_claim)
            state = self.state(pod.meta.namespace, name)
            if state is None:
                key = f"{pod.meta.namespace}/{name}"
                return f'failed to get resource claim {key}: resourceclaim.resource.k8s.io "{name}" not found'
            if state.allocation is None:
                wanted.append(state.claim)
            elif state.allocation.terms is not None and not any_node_term_matches(state.allocation.terms, node):
                return f"claim {state.claim.meta.key} node selector does not match node {node.name}"
        return self._allocation_error(wanted, node) if wanted else ""

    def _allocation_error(self, wanted: list[ResourceClaim], node: Node) -> str:
        try:
            found = self._allocate(wanted, node)
        except AllocationError as error:
            return f"cannot allocate DRA claims on node {node.name}: {error}"
        return "" if found is not None else f"cannot allocate all DRA claims on node {node.name}"

    # Changes

    def allocate(self, pod: Pod, node: Node, remembered: Claims | None) -> Claims:
        """Reserve the pod's claims for it, allocating those that are not; return what the task now holds.

        An allocation that the task remembers is taken up again, whatever happened to its devices since.
        """
        held = dict(remembered.allocations) if remembered is not None else {}
        for pod_claim, state in self._existing(pod):
            devices = held.get(pod_claim.name)
            known = Allocation(devices, self._terms.get(devices)) if devices is not None else state.allocation
            allocation = known or self._allocate_one(state.claim, node)
            if allocation is None:
                continue
            held[pod_claim.name] = allocation.devices
            self._terms[allocation.devices] = allocation.terms
            reserved = state.reserved | {_consumer(pod)}
            self._states[state.claim.meta.key] = replace(state, allocation=allocation, reserved=reserved)
        return Claims.of(held)

    def release(self, pod: Pod, remembered: Claims | None) -> Claims:
        """Give up the pod's reservations; a claim that nobody reserves any more loses its devices."""
        held = dict(remembered.allocations) if remembered is not None else {}
        for pod_claim, state in self._existing(pod):
            reserved = state.reserved - {_consumer(pod)}
            allocation = state.allocation if reserved else None
            self._states[state.claim.meta.key] = replace(state, allocation=allocation, reserved=reserved)
            if pod_claim.name in held:
                held[pod_claim.name] = allocation.devices if allocation is not None else None
        return Claims.of(held)

    def _existing(self, pod: Pod) -> Iterator[tuple[PodClaim, ClaimState]]:
        """Yield the pod's claims that exist, each as it is when its turn comes."""
        for pod_claim in pod.claims:
            name = claim_name(pod_claim)
            state = self.state(pod.meta.namespace, name) if name is not None else None
            if state is not None:
                yield pod_claim, state

    # Allocation

    def _allocate_one(self, claim: ResourceClaim, node: Node) -> Allocation | None:
        try:
            found = self._allocate([claim], node)
        except AllocationError:
            return None
        return found[0] if found is not None else None

    def _allocate(self, claims: list[ResourceClaim], node: Node) -> list[Allocation] | None:
        """Search devices for all claims together, in the order of pools, slices and devices."""
        offers = self._offers(node)
        wants = [want for claim in claims for want in self._wants(claim, offers)]
        taken = {
            (d.driver, d.pool, d.device)
            for state in self._states.values()
            if state.allocation is not None
            for d in state.allocation.devices
        }
        chosen = _search(wants, taken)
        if chosen is None:
            return None
        out = []
        for claim in claims:
            picked = [(want.request, offer) for want, offer in chosen if want.claim is claim]
            out.append(_allocation(picked, node))
        return out

    def _offers(self, node: Node) -> list[_Offer]:
        """Return the devices that the node can reach; only the newest generation of a pool counts."""
        reachable = [s for s in self._slices if _reaches(s, node)]
        newest: dict[tuple[str, str], int] = {}
        for piece in reachable:
            pool = (piece.driver, piece.pool)
            newest[pool] = max(newest.get(pool, 0), piece.pool_generation or 0)
        return [
            _Offer(piece, device)
            for piece in reachable
            if (piece.pool_generation or 0) == newest[piece.driver, piece.pool]
            for device in piece.devices
        ]

    def _wants(self, claim: ResourceClaim, offers: list[_Offer]) -> list[_Want]:
        wants: list[_Want] = []
        for request in claim.requests:
            where = f"claim {claim.meta.key}, request {request.name}"
            if request.alternatives:
                raise AllocationError(f"{where}: has subrequests, but the DRAPrioritizedList feature is disabled")
            if request.admin_access:
                raise AllocationError(f"{where}: admin access is requested, but the feature is disabled")
            if request.device_class not in self._classes:
                raise AllocationError(f"{where}: could not retrieve device class {request.device_class}")
            usable = tuple(o for o in offers if self._selects(request, o, where))
            count = len(usable) if request.mode == "All" else (request.count if request.count is not None else 1)
            if request.mode == "All" and not usable:
                count = 1
            wants.extend(_Want(claim, request, usable) for _ in range(count))
        return wants

    def _selects(self, request: DeviceRequest, offer: _Offer, where: str) -> bool:
        for expression in (*self._classes[request.device_class].selectors, *request.selectors):
            try:
                if not cel.matches(expression, offer.piece.driver, offer.device):
                    return False
            except cel.NotModelledError:
                self.not_modelled.add(f"device selector {expression}")
                return False
            except cel.CelRuntimeError as error:
                raise AllocationError(f"{where}: CEL runtime error: {error}") from error
        return True


@dataclass(frozen=True, slots=True)
class _Offer:
    piece: ResourceSlice
    device: Device

    @property
    def key(self) -> DeviceKey:
        return (self.piece.driver, self.piece.pool, self.device.name)


@dataclass(frozen=True, slots=True, eq=False)
class _Want:
    """One device for one request of one claim."""

    claim: ResourceClaim
    request: DeviceRequest
    usable: tuple[_Offer, ...]


def is_gpu_claim(claim: ResourceClaim) -> bool:
    return any(not r.alternatives and is_gpu_name(r.device_class) for r in claim.requests)


def _initial(claim: ResourceClaim) -> ClaimState:
    allocation = Allocation(claim.allocated, claim.allocation_terms) if claim.allocated is not None else None
    return ClaimState(claim, allocation, frozenset(claim.reserved_uids or claim.reserved_for))


def _consumer(pod: Pod) -> str:
    return pod.meta.uid or pod.meta.name


def _reaches(piece: ResourceSlice, node: Node) -> bool:
    if piece.node_name:
        return piece.node_name == node.name
    return piece.all_nodes or (piece.node_terms is not None and any_node_term_matches(piece.node_terms, node))


def _search(wants: list[_Want], taken: set[DeviceKey]) -> list[tuple[_Want, _Offer]] | None:
    """Try every order of devices depth first; an explicit stack, since a claim may want many devices."""
    chosen: list[tuple[_Want, _Offer]] = []
    cursors = [0]
    while len(chosen) < len(wants):
        want = wants[len(chosen)]
        offer = None
        while offer is None and cursors[-1] < len(want.usable):
            candidate = want.usable[cursors[-1]]
            cursors[-1] += 1
            if candidate.key not in taken and _constraints_hold(want, candidate, chosen):
                offer = candidate
        if offer is not None:
            chosen.append((want, offer))
            taken.add(offer.key)
            cursors.append(_first_cursor(wants, len(chosen), cursors[-1]))
            continue
        cursors.pop()
        if not chosen:
            return None
        taken.discard(chosen.pop()[1].key)
    return chosen


def _first_cursor(wants: list[_Want], at: int, previous: int) -> int:
    """Devices of one request are picked in ascending order: other orders would only repeat the same sets."""
    if at < len(wants) and wants[at].request is wants[at - 1].request and wants[at].claim is wants[at - 1].claim:
        return previous
    return 0


def _constraints_hold(want: _Want, offer: _Offer, chosen: list[tuple[_Want, _Offer]]) -> bool:
    for constraint in want.claim.constraints:
        if not constraint.match_attribute:
            continue
        if constraint.requests and want.request.name not in constraint.requests:
            continue
        value = _attribute(offer, constraint.match_attribute)
        if value is None:
            return False
        for other, picked in chosen:
            concerned = not constraint.requests or other.request.name in constraint.requests
            if other.claim is want.claim and concerned and _attribute(picked, constraint.match_attribute) != value:
                return False
    return True


def _attribute(offer: _Offer, name: str) -> str | int | bool | None:
    attributes = offer.device.attributes
    domain, _, bare = name.rpartition("/")
    if name in attributes:
        return attributes[name]
    return attributes.get(bare) if domain == offer.piece.driver else None


def _allocation(picked: list[tuple[DeviceRequest, _Offer]], node: Node) -> Allocation:
    """Devices that belong to a node pin the claim to it; those of a labelled set of nodes to that set."""
    devices = tuple(AllocatedDevice(r.name, o.piece.driver, o.piece.pool, o.device.name) for r, o in picked)
    if any(o.piece.node_name for _, o in picked):
        pin = NodeSelectorTerm(match_fields=(Requirement("metadata.name", "In", (node.name,)),))
        return Allocation(devices, (pin,))
    terms = [o.piece.node_terms for _, o in picked if o.piece.node_terms is not None]
    if not terms:
        return Allocation(devices)
    merged = tuple(r for group in terms for r in group[0].match_expressions)
    fields = tuple(r for group in terms for r in group[0].match_fields)
    return Allocation(devices, (NodeSelectorTerm(merged, fields),))
