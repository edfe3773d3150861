"""The store keeps one counter, old states for a while, and makes no version of a write that changes nothing."""

from __future__ import annotations

import pytest

from gangdash.simulator.kinds import find_kind
from gangdash.simulator.store import ObjectStore
from tests.simulator.objects import pod, pods, queue

POD = find_kind("pods")


def _names(store: ObjectStore, revision: int) -> list[str]:
    return [key[1] for key, _body in store.items(POD, None, revision)[0]]


def test_same_content_makes_no_version() -> None:
    store = ObjectStore()
    first = store.put(pod("a"))
    assert store.put(pod("a")) == first
    assert store.put(pod("a", app="x")) == first + 1
    assert store.put(pod("a") | {"metadata": pod("a", app="x")["metadata"] | {"resourceVersion": "7"}}) == first + 1


def test_uid_and_creation_survive_a_change() -> None:
    store = ObjectStore()
    store.put(pod("a"))
    before = store.get(POD, ("team", "a"))
    store.put(pod("a", app="x"))
    after = store.get(POD, ("team", "a"))

    assert before
    assert after
    assert before.split(b'"uid":')[1][:38] == after.split(b'"uid":')[1][:38]


def test_older_states_are_listed_until_history_forgets_them() -> None:
    store = ObjectStore(history=10)
    old = store.write(pods(3))
    store.delete("pods", "team", "pod-001")
    assert _names(store, old) == ["pod-000", "pod-001", "pod-002"]
    assert _names(store, store.revision) == ["pod-000", "pod-002"]

    for number in range(40):
        store.put(pod("busy", count=str(number)))
    assert store.compacted > old
    assert _names(store, store.revision) == ["busy", "pod-000", "pod-002"]
    assert len(store.changes_after(store.compacted)) <= 20


def test_write_is_one_step() -> None:
    store = ObjectStore()
    store.write(pods(2))
    store.write([pod("b")], [("pods", "team", "pod-000")])

    assert _names(store, store.revision) == ["b", "pod-001"]


def test_deleting_what_is_not_there_and_wrong_scope_are_errors() -> None:
    store = ObjectStore()
    with pytest.raises(KeyError, match="no Pod team/none"):
        store.delete("pods", "team", "none")
    with pytest.raises(ValueError, match="scope"):
        store.put(pod("a", namespace=""))
    with pytest.raises(KeyError, match="Widget"):
        store.put({"apiVersion": "v1", "kind": "Widget", "metadata": {"name": "a"}})
    store.put(queue("q") | {"metadata": {"name": "q", "namespace": "dropped"}})
    assert store.get(find_kind("Queue"), ("", "q"))
