"""Affinity between pods: counted per topology pair, over placed pods, in both directions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gangdash.engine.model.meta import Meta
from gangdash.engine.model.node import Node
from gangdash.engine.model.pod import Pod
from gangdash.engine.model.selectors import Affinity, LabelSelector, PodAffinityTerm, PreferredPodTerm
from gangdash.engine.plugins import open_session
from gangdash.engine.rules import affinity
from gangdash.engine.rules.choice import choices_of
from tests.engine.builders import HOST, ZONE, Cluster, outcome, places, texts

DATABASE = LabelSelector({"app": "database"})
NODES = {
    name: Node(Meta(name, labels={HOST: name, ZONE: zone}))
    for name, zone in (("n0", "east"), ("n1", "east"), ("n2", "west"))
} | {"bare": Node(Meta("bare", labels={HOST: "bare"}))}


def _pod(name: str, labels: dict[str, str] | None = None, own: Affinity | None = None, namespace: str = "team") -> Pod:
    return Pod(Meta(name, namespace, uid=name, labels=labels or {}), affinity=own)


def _index(
    *placed: tuple[Pod, str], pods: tuple[Pod, ...] = (), namespaces: tuple[Meta, ...] = ()
) -> affinity.PodAffinityIndex:
    index = affinity.PodAffinityIndex(NODES, namespaces, [pod for pod, _ in placed] + list(pods))
    for pod, node in placed:
        index.add(pod, node)
    return index


def _refused(index: affinity.PodAffinityIndex, pod: Pod) -> dict[str, str]:
    state = index.pre_filter(pod)
    return {} if state is None else {name: r for name, node in NODES.items() if (r := index.failure(state, node))}


def _near(selector: LabelSelector | None = DATABASE, key: str = ZONE, **fields: Any) -> Affinity:
    return Affinity(pod_required=(PodAffinityTerm(key, selector, **fields),))


def _apart(selector: LabelSelector = DATABASE, key: str = ZONE) -> Affinity:
    return Affinity(anti_required=(PodAffinityTerm(key, selector),))


def test_only_domains_that_hold_a_match_are_left() -> None:
    index = _index((_pod("db", {"app": "database"}), "n0"), pods=(_pod("x", own=_near()),))
    assert _refused(index, _pod("new", own=_near())) == {
        "n2": affinity.AFFINITY_UNMET,
        "bare": affinity.AFFINITY_UNMET,
    }


def test_the_first_of_a_series_may_go_anywhere_with_the_topology_key() -> None:
    first = _pod("new", {"app": "database"}, _near())
    assert _refused(_index(pods=(first,)), first) == {"bare": affinity.AFFINITY_UNMET}
    stranger = _pod("new", {}, _near())
    assert set(_refused(_index(pods=(stranger,)), stranger)) == set(NODES)


def test_domains_that_hold_an_excluded_pod_are_refused() -> None:
    new = _pod("new", own=_apart())
    index = _index((_pod("db", {"app": "database"}), "n1"), pods=(new,))
    assert _refused(index, new) == {"n0": affinity.ANTI_AFFINITY_UNMET, "n1": affinity.ANTI_AFFINITY_UNMET}


def test_placed_pods_keep_others_away_by_their_own_rules() -> None:
    guard = _pod("guard", own=_apart(LabelSelector({"app": "web"})))
    index = _index((guard, "n2"))
    assert _refused(index, _pod("new", {"app": "web"})) == {"n2": affinity.EXISTING_ANTI_AFFINITY_UNMET}
    assert _refused(index, _pod("new", {"app": "other"})) == {}
    index.remove(guard, "n2")
    assert _refused(index, _pod("new", {"app": "web"})) == {}


@pytest.mark.parametrize(
    "term, refused",
    [
        pytest.param({}, {"n0", "n1", "n2", "bare"}, id="own namespace only"),
        pytest.param({"namespaces": ("data",)}, {"n2", "bare"}, id="a named namespace"),
        pytest.param(
            {"namespace_selector": LabelSelector({"kind": "data"})}, {"n2", "bare"}, id="a labelled namespace"
        ),
        pytest.param(
            {"namespace_selector": LabelSelector({"kind": "x"})}, {"n0", "n1", "n2", "bare"}, id="other labels"
        ),
        pytest.param({"namespace_selector": LabelSelector()}, {"n2", "bare"}, id="every namespace"),
    ],
)
def test_namespaces_of_a_term(term: dict[str, Any], refused: set[str]) -> None:
    new = _pod("new", own=_near(**term))
    placed = _pod("db", {"app": "database"}, namespace="data")
    index = _index((placed, "n0"), pods=(new,), namespaces=(Meta("data", labels={"kind": "data"}),))
    assert set(_refused(index, new)) == refused


def test_preferences_add_up_over_pods_and_directions() -> None:
    wish = Affinity(pod_preferred=(PreferredPodTerm(5, PodAffinityTerm(ZONE, DATABASE)),))
    dislike = Affinity(anti_preferred=(PreferredPodTerm(3, PodAffinityTerm(HOST, LabelSelector({"app": "web"}))),))
    new = _pod("new", {"app": "web"}, wish)
    index = _index((_pod("db", {"app": "database"}, dislike), "n0"), pods=(new,))
    scores = index.scores(new)
    assert scores is not None
    assert {name: affinity.pair_score(scores, node) for name, node in NODES.items()} == {
        "n0": 2,
        "n1": 5,
        "n2": 0,
        "bare": 0,
    }


def test_without_any_term_nothing_is_kept() -> None:
    index = _index((_pod("db", {"app": "database"}), "n0"))
    assert not index.active
    assert index.pre_filter(_pod("new", own=_near())) is None
    assert index.scores(_pod("new")) is None


def test_a_cycle_counts_pods_placed_in_it() -> None:
    """Two pods that exclude each other per node take two nodes; a third finds none."""
    cluster = Cluster()
    for name in ("n0", "n1"):
        cluster.node(name, 4)
    lonely = Affinity(anti_required=(PodAffinityTerm(HOST, LabelSelector({"app": "lonely"})),))
    for index in range(3):
        cluster.gang(f"g{index}", 1, age=900 - index, pod={"affinity": lonely})
        pod = cluster.pods[-1]
        cluster.pods[-1] = replace(pod, meta=replace(pod.meta, labels={"app": "lonely"}))
    result = cluster.run("allocate")
    assert {*places(result, "g0").values(), *places(result, "g1").values()} == {"n0", "n1"}
    assert outcome(result, "g2") == "unschedulable"
    assert affinity.ANTI_AFFINITY_UNMET in texts(result, "g2")[0][1]


def test_a_preferred_neighbour_draws_a_pod() -> None:
    cluster = Cluster()
    for name in ("n0", "n1", "n2"):
        cluster.node(name, 4)
    cluster.gang("db", on=["n2"], gpus=0)
    pod = cluster.pods[-1]
    cluster.pods[-1] = replace(pod, meta=replace(pod.meta, labels={"app": "database"}))
    wish = Affinity(pod_preferred=(PreferredPodTerm(1, PodAffinityTerm(HOST, DATABASE)),))
    cluster.gang("new", pod={"affinity": wish})
    assert list(places(cluster.run("allocate"), "new").values()) == ["n2"]


@pytest.mark.parametrize(
    "term, is_touched",
    [
        pytest.param(_apart(), True, id="kept away by a pod that may be placed"),
        pytest.param(
            Affinity(pod_preferred=(PreferredPodTerm(1, PodAffinityTerm(HOST, DATABASE)),)), True, id="drawn near"
        ),
        pytest.param(
            Affinity(anti_preferred=(PreferredPodTerm(1, PodAffinityTerm(HOST, DATABASE)),)), True, id="disliked"
        ),
        pytest.param(_near(), False, id="what another requires to be there is its own affair"),
        pytest.param(_apart(LabelSelector({"app": "web"})), False, id="other labels"),
        pytest.param(
            Affinity(anti_required=(PodAffinityTerm(HOST, DATABASE, namespaces=("lab",)),)), False, id="other namespace"
        ),
    ],
)
def test_only_pods_that_a_term_can_reach_are_asked_on_every_node(term: Affinity, *, is_touched: bool) -> None:
    cluster = Cluster()
    cluster.node("n0")
    cluster.gang("owner", pod={"affinity": term})
    cluster.gang("db")
    pod = cluster.pods[-1]
    cluster.pods[-1] = replace(pod, meta=replace(pod.meta, labels={"app": "database"}))
    snapshot = cluster.snapshot()
    session = open_session(snapshot, snapshot.shards[0])
    tasks = {task.name: choices_of(session).is_plain(task) for task in session.tasks.values()}
    assert tasks == {"owner-0": False, "db-0": not is_touched}
