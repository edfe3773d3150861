"""The exact search agrees with brute force, and with a constraint solver where one is installed."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangdash.engine.exact import Answer, PodClass, place


def _brute(classes: list[PodClass], free: list[tuple[float, ...]]) -> bool:
    """Try every node for every pod."""
    pods = [index for index, pod in enumerate(classes) for _ in range(pod.count)]
    for nodes in itertools.product(range(len(free)), repeat=len(pods)):
        if _holds(classes, free, list(zip(pods, nodes, strict=True))):
            return True
    return not pods


def _holds(classes: list[PodClass], free: list[tuple[float, ...]], chosen: list[tuple[int, int]]) -> bool:
    for node, room in enumerate(free):
        here = [pod for pod, at in chosen if at == node]
        if any(classes[p].nodes is not None and node not in (classes[p].nodes or ()) for p in here):
            return False
        if any(here.count(p) > (classes[p].per_node or len(here)) for p in here):
            return False
        used = [sum(classes[p].request[dim] for p in here) for dim in range(len(room))]
        if here and any(u > r for u, r in zip(used, room, strict=True)):
            return False
    return True


def _check_placement(classes: list[PodClass], free: list[tuple[float, ...]], answer: Answer) -> None:
    assert [sum(f[i] for f in answer.fills) for i in range(len(classes))] == [c.count for c in classes]
    chosen = [(p, n) for n, fill in enumerate(answer.fills) for p, count in enumerate(fill) for _ in range(count)]
    assert _holds(classes, free, chosen)


_classes = st.lists(
    st.builds(
        PodClass,
        count=st.integers(0, 3),
        request=st.tuples(st.integers(0, 4).map(float), st.integers(0, 4).map(float)),
        nodes=st.none() | st.frozensets(st.integers(0, 3)),
        per_node=st.none() | st.integers(1, 2),
    ),
    min_size=1,
    max_size=3,
).filter(lambda classes: sum(c.count for c in classes) <= 6)
_nodes = st.lists(st.tuples(st.integers(0, 8).map(float), st.integers(0, 8).map(float)), min_size=1, max_size=4)


@given(classes=_classes, free=_nodes)
@settings(max_examples=300, deadline=None)
def test_place_agrees_with_brute_force(classes: list[PodClass], free: list[tuple[float, ...]]) -> None:
    answer = place(classes, free)
    assert answer.fits is _brute(classes, free)
    if answer.fits:
        _check_placement(classes, free, answer)


def test_greedy_order_does_not_matter_to_the_exact_search() -> None:
    small = PodClass(1, (2.0,))
    large = PodClass(1, (8.0,), frozenset({0}))
    assert place([small, large], [(8.0,), (2.0,)]).fits is True


def test_enough_in_sum_but_not_per_node_is_a_proven_no() -> None:
    assert place([PodClass(2, (8.0,))], [(7.0,), (9.0,), (7.0,)]).fits is False


def test_a_spent_budget_is_neither_yes_nor_no() -> None:
    rng = random.Random(7)
    classes = [PodClass(9, (float(rng.randint(3, 7)), float(rng.randint(3, 7)))) for _ in range(4)]
    free = [(float(rng.randint(10, 20)), float(rng.randint(10, 20))) for _ in range(15)]
    assert place(classes, free, budget=3).fits is None


def test_a_node_below_zero_takes_nothing() -> None:
    assert place([PodClass(1, (0.0, 1.0))], [(-1.0, 8.0)]).fits is False


@pytest.mark.oracle
def test_place_agrees_with_a_constraint_solver() -> None:
    cp_model = pytest.importorskip("ortools.sat.python.cp_model", reason="the oracle dependency group is not installed")
    rng = random.Random(11)
    for _ in range(150):
        classes, free = _tight_instance(rng)
        model = cp_model.CpModel()
        fills = [[model.new_int_var(0, c.count, "") for c in classes] for _ in free]
        for index, pods in enumerate(classes):
            model.add(sum(row[index] for row in fills) == pods.count)
        for row, room in zip(fills, free, strict=True):
            for dim, amount in enumerate(room):
                wanted = sum(int(c.request[dim]) * n for c, n in zip(classes, row, strict=True))
                model.add(wanted <= int(amount))
        solved = cp_model.CpSolver().solve(model) in (cp_model.OPTIMAL, cp_model.FEASIBLE)
        assert place(classes, free).fits is solved


def _tight_instance(rng: random.Random) -> tuple[list[PodClass], list[tuple[float, ...]]]:
    """A rack of 4 to 16 nodes that is 80 to 100 % full when all pods are placed."""
    free: list[tuple[float, ...]] = [(8.0, 96.0, 1024.0)] * rng.randint(4, 16)
    shapes = [(1.0, 8.0, 64.0), (2.0, 30.0, 128.0), (4.0, 20.0, 600.0), (8.0, 90.0, 500.0)]
    wanted = rng.uniform(0.8, 1.0) * 8 * len(free)
    counts = [0] * len(shapes)
    while sum(n * s[0] for n, s in zip(counts, shapes, strict=True)) < wanted:
        counts[rng.randrange(len(shapes))] += 1
    return [PodClass(n, s) for n, s in zip(counts, shapes, strict=True)], free
