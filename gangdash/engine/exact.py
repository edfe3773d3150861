"""Does any placement exist? An exact search where the scheduler's walk is greedy.

Problem: pods come in classes of equal pods (a count, one request vector, the nodes each may use, how many
may share a node); nodes have a free vector. Place all pods so that no node is over its free amounts.
Choice: how many pods of each class a node takes, node by node. Search: depth first over nodes, fullest
fills first, with a bound on what the remaining nodes can take, a memo on what is still to be placed, and
equal neighbours filled in falling order. Answer: a placement, a proof that there is none, or
``None`` when the step budget ran out: never a guess.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

Vector = tuple[float, ...]
Fill = tuple[int, ...]
"""How many pods of each class one node takes."""

STEP_BUDGET = 200_000
"""Steps of one search. Tight random problems of a rack's size needed fewer in every measured case."""

_EPSILON = 1e-9


@dataclass(frozen=True, slots=True)
class PodClass:
    """``nodes`` are indexes of the nodes allowed (``None`` = all); ``per_node`` bounds how many share one."""

    count: int
    request: Vector
    nodes: frozenset[int] | None = None
    per_node: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """``fits`` is ``None`` when the budget ran out; ``fills`` then and on "no" is empty, else one fill a node."""

    fits: bool | None
    fills: tuple[Fill, ...] = ()
    steps: int = 0


@dataclass(slots=True)
class _Search:
    classes: Sequence[PodClass]
    free: Sequence[Vector]
    most: list[list[int]]
    """``most[node][class]``: how many pods of the class alone fit on the node."""
    suffix: list[list[int]]
    """``suffix[node][class]``: the same, summed from this node on."""
    room: list[Vector]
    """Free amounts summed from this node on."""
    budget: int
    steps: int = 0
    failed: set[tuple[int, Fill, Fill | None]] = field(default_factory=set)


def alone(pods: PodClass, node: int, free: Vector) -> int:
    """Return how many pods of one class fit on one node that takes no other pods."""
    if pods.nodes is not None and node not in pods.nodes:
        return 0
    if any(f < -_EPSILON for f in free):
        return 0
    return _fit(pods, free) if pods.per_node is None else min(pods.per_node, _fit(pods, free))


def place(classes: Sequence[PodClass], free: Sequence[Vector], budget: int = STEP_BUDGET) -> Answer:
    """Return whether all pods of all classes fit on the nodes together."""
    most = [[alone(pods, node, vector) for pods in classes] for node, vector in enumerate(free)]
    order = _node_order(free, most)
    search = _prepare(classes, [free[n] for n in order], [most[n] for n in order], budget)
    need = tuple(pods.count for pods in classes)
    fills: list[Fill] = []
    fits = _descend(search, 0, need, None, fills)
    if not fits:
        return Answer(fits, (), search.steps)
    by_node = dict(zip(order, fills, strict=False))
    empty = (0,) * len(classes)
    return Answer(True, tuple(by_node.get(n, empty) for n in range(len(free))), search.steps)


def _node_order(free: Sequence[Vector], most: list[list[int]]) -> list[int]:
    """Order nodes so that equal ones are neighbours and the most useful come first; drop useless ones."""
    useful = [n for n in range(len(free)) if any(most[n])]
    return sorted(useful, key=lambda n: (-sum(most[n]), most[n], free[n], n))


def _prepare(classes: Sequence[PodClass], free: Sequence[Vector], most: list[list[int]], budget: int) -> _Search:
    dims = len(classes[0].request) if classes else 0
    suffix = [[0] * len(classes) for _ in range(len(free) + 1)]
    room: list[Vector] = [(0.0,) * dims for _ in range(len(free) + 1)]
    for node in range(len(free) - 1, -1, -1):
        suffix[node] = [a + b for a, b in zip(suffix[node + 1], most[node], strict=True)]
        room[node] = tuple(a + max(0.0, b) for a, b in zip(room[node + 1], free[node], strict=True))
    return _Search(classes, free, most, suffix, room, budget)


def _hopeless(search: _Search, node: int, need: Fill) -> bool:
    """Whether the nodes from here on cannot hold what is left, by class or by amount."""
    if any(n > s for n, s in zip(need, search.suffix[node], strict=True)):
        return True
    for dim, room in enumerate(search.room[node]):
        wanted = sum(n * pods.request[dim] for n, pods in zip(need, search.classes, strict=True))
        if wanted > room + _EPSILON * max(1.0, abs(room)):
            return True
    return False


def _descend(search: _Search, node: int, need: Fill, before: Fill | None, fills: list[Fill]) -> bool | None:
    """Fill nodes from ``node`` on; ``before`` is the fill of an equal neighbour, which bounds this one."""
    if not any(need):
        return True
    if node >= len(search.free) or _hopeless(search, node, need):
        return False
    key = (node, need, before)
    if key in search.failed:
        return False
    equal_next = node + 1 < len(search.free) and _equal(search, node, node + 1)
    for fill in _fills(search, node, need):
        search.steps += 1
        if search.steps > search.budget:
            return None
        if before is not None and fill > before:
            continue
        left = tuple(n - f for n, f in zip(need, fill, strict=True))
        fills.append(fill)
        found = _descend(search, node + 1, left, fill if equal_next else None, fills)
        if found is not False:
            return found
        fills.pop()
    search.failed.add(key)
    return False


def _equal(search: _Search, one: int, other: int) -> bool:
    return search.free[one] == search.free[other] and search.most[one] == search.most[other]


def _fills(search: _Search, node: int, need: Fill) -> Iterator[Fill]:
    """Yield the fills of a node that leave no room for one more needed pod, largest counts first.

    A fill that could take one more pod is never better than the one that takes it, so only maximal fills
    are tried; with equal neighbours in falling order that stays complete since equal nodes can swap.
    """
    yield from _extend(search, (node, need), search.free[node], ())


def _extend(search: _Search, at: tuple[int, Fill], free: Vector, chosen: Fill) -> Iterator[Fill]:
    node, need = at
    index = len(chosen)
    if index == len(search.classes):
        if _is_maximal(search, at, free, chosen):
            yield chosen
        return
    pods = search.classes[index]
    for count in range(min(need[index], search.most[node][index], _fit(pods, free)), -1, -1):
        left = tuple(f - count * r for f, r in zip(free, pods.request, strict=True))
        yield from _extend(search, at, left, (*chosen, count))


def _fit(pods: PodClass, free: Vector) -> int:
    counts = [int((f + _EPSILON) // r) for f, r in zip(free, pods.request, strict=True) if r > 0]
    return max(0, min([pods.count, *counts]))


def _is_maximal(search: _Search, at: tuple[int, Fill], free: Vector, chosen: Fill) -> bool:
    node, need = at
    return not any(
        chosen[index] < min(need[index], search.most[node][index]) and _fit(pods, free) > 0
        for index, pods in enumerate(search.classes)
    )
