"""No placement exists: because of lost capacity (NODE), because it never can (too small), or because others hold it.

Asks ``room`` with things taken away, in this order: state of nodes and devices; then, on the empty cluster, what
makes it impossible for ever; then what is in the way now. The smallest set that makes the step fit is the binding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gangdash.engine.explain import nodestate, nofit
from gangdash.engine.explain.gang import Gang
from gangdash.engine.explain.holders import holders_on
from gangdash.engine.explain.nodegroups import node_groups
from gangdash.engine.explain.room import CHECK_REASONS, DOMAIN, NOTHING, STATE_REASONS, Lift, Lifts, Room, reason_lift
from gangdash.engine.identifiers import NodeReason
from gangdash.engine.rules.steps import next_tasks
from gangdash.engine.verdict import Certainty, Finding, Members, ReasonCode


def room_of(gang: Gang) -> Room | None:
    """Return the room for the gang's next step; None where the scheduler would try none."""
    job = gang.job
    if job is None or gang.shard is None:
        return None
    tasks = next_tasks(gang.context.session(gang.shard), job, real=True)
    return Room(gang.context.stock(gang.shard), job, tasks) if tasks else None


def never_fits(gang: Gang) -> bool:
    """Whether the next step fits nowhere even on the empty, repaired cluster, whoever may be evicted."""
    room = room_of(gang)
    return room is not None and _never(room, frozenset(state_lifts(room))) is not None


def is_split(gang: Gang, room: Room | None) -> bool:
    """Whether NUMA zones, which the replay does not know, leave no placement where the replay sees one."""
    return room is not None and NodeReason.NUMA in room.present and room.fits() is False and bool(gang.result)


def state_lifts(room: Room) -> list[Lift]:
    return [reason_lift(reason) for reason in STATE_REASONS if reason in room.present]


def busy_lifts(room: Room) -> list[Lift]:
    """Return one lift per resource that others use; GPUs first, so that they are named where they suffice."""
    names = [room.slot_name(slot) for slot in room.slots]
    return [Lift("busy", name) for name in sorted(names, key=_resource_rank)]


def _resource_rank(name: str) -> tuple[int, str]:
    order = {"gpu": 0, "cpu": 2, "memory": 3, "pods": 4}
    return order.get(name, 1), name


def capacity(gang: Gang, room: Room) -> Iterator[Finding]:
    """Yield why the step fits nowhere: node state, never, or now; what else is in the way comes after."""
    if room.fits():
        return
    states = state_lifts(room)
    smallest = room.smallest(states) if states else None
    # A set that the search could not prove to help is not told as one that would.
    repaired = bool(smallest) and room.fits(smallest or NOTHING) is True
    state = nodestate.finding(gang, room, smallest) if smallest and repaired else None
    state = state or nodestate.unselected_plugin(gang, room)
    if state is not None:
        yield _complete(gang, room, state, _certainty(room, is_proved=True))
    never = _never(room, frozenset(states))
    if never is not None:
        yield from _findings(gang, room, never, never=True)
        return
    now = _now(room, frozenset(states))
    if now is not None:
        yield from _findings(gang, room, now, never=False)


def _all_busy(room: Room) -> Lifts:
    names = room.session.layout.names
    return frozenset(Lift("busy", name) for name in names)


def _checks(room: Room) -> list[Lift]:
    """Return a lift for every check that refuses some node; for shared GPUs the size of a device is one."""
    present = set(room.present)
    if any(item.task.asks_shared_gpu for item in room.classes):
        present.add(NodeReason.GPU_SHAPE)
    return [reason_lift(reason) for reason in CHECK_REASONS if reason in present]


def _domain(room: Room) -> list[Lift]:
    return [DOMAIN] if room.level else []


def _never(room: Room, states: Lifts) -> Lifts | None:
    """Return the smallest set without which the step fits the empty, repaired cluster; None when it fits as it is."""
    empty = states | _all_busy(room)
    if room.fits(empty) is not False:
        return None
    lifts = [*_domain(room), *_checks(room), *_sizes(room, empty)]
    return room.smallest(lifts, empty) or frozenset(lifts)


def _sizes(room: Room, empty: Lifts) -> list[Lift]:
    """Return one lift per resource; first those of which a pod asks for more than any node has."""

    def rank(slot: int) -> tuple[bool, tuple[int, str]]:
        largest = max((room.supply(node, empty)[slot] for node in room.nodes), default=0.0)
        asked = max(item.task.request[slot] for item in room.classes)
        return asked <= largest, _resource_rank(room.slot_name(slot))

    return [Lift("size", room.slot_name(slot)) for slot in sorted(room.slots, key=rank)]


def _now(room: Room, states: Lifts) -> Lifts | None:
    """Return the smallest set of things in the way now; None when nothing is, so that the search finds a placement."""
    if room.fits() is not False:
        return None
    lifts = [*_domain(room), *busy_lifts(room), *_checks(room)]
    found = room.smallest(lifts)
    return found if found is not None else room.smallest([*lifts, *states])


def _findings(gang: Gang, room: Room, binding: Lifts, *, never: bool) -> Iterator[Finding]:
    found = list(nofit.findings(nofit.Case(gang, room, binding, never)))
    # Only all of them together leave no placement, so the first one, which is the verdict, carries what binds in each.
    together = tuple(dict.fromkeys(constraint for finding in found for constraint in finding.binding))
    base = frozenset(state_lifts(room)) | _all_busy(room) if never else NOTHING
    certainty = _certainty(room, is_proved=never or room.fits(base | binding) is True)
    for finding in found:
        first = replace(finding, binding=together) if finding is found[0] else finding
        yield _complete(gang, room, first, certainty)


def _certainty(room: Room, *, is_proved: bool) -> Certainty:
    """Return whether exact searches have shown that there is no placement, and one once the cause is gone."""
    return Certainty.PROVED if is_proved and room.fits() is False else Certainty.UNPROVEN


def _complete(gang: Gang, room: Room, finding: Finding, certainty: Certainty) -> Finding:
    """Add what every finding about capacity carries: members, node reasons, holders, proof."""
    # What is proved not to fit as a whole leaves at least one pod out, however well the rest does.
    placed = len(gang.placed)
    needed = len(room.tasks) + (placed if not gang.is_satisfied else 0)
    fit = min(placed, needed - len(room.tasks)) + min(room.most_pods(), len(room.tasks) - 1)
    nodes = finding.nodes or node_groups(gang, room)
    return replace(
        finding,
        members=finding.members or Members(needed, fit, needed - fit, 0),
        nodes=nodes,
        holders=finding.holders or (() if finding.code in _NEVER else holders_on(gang, room)),
        certainty=certainty,
    )


_NEVER = frozenset({ReasonCode.NODE_TOO_SMALL, ReasonCode.CLUSTER_TOO_SMALL, ReasonCode.DOMAIN_TOO_SMALL})
