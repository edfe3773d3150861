"""What a shard's list of plugins switches on and off."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gangdash.engine.model.config import Plugin, SchedulerConfig
from gangdash.engine.model.pod import HostPort
from gangdash.engine.plugins import NUMA, USAGE, open_session
from gangdash.engine.rules.choice import choices_of
from gangdash.engine.session import Session
from tests.engine.builders import Cluster, gang_of, outcome, places


def _without(cluster: Cluster, *names: str) -> None:
    plugins = tuple(plugin for plugin in cluster.config.plugins if plugin.name not in names)
    cluster.config = replace(cluster.config, plugins=plugins)


def _open(cluster: Cluster) -> Session:
    snapshot = cluster.snapshot()
    return open_session(snapshot, snapshot.shards[0])


def test_what_is_not_replayed_is_said() -> None:
    cluster = Cluster()
    cluster.node("n0", 1)
    cluster.gang("g", 1)
    assert gang_of(cluster.run("allocate"), "g").not_modelled == ()
    cluster.plugin("numa")
    cluster.config = replace(cluster.config, usage_db={"clientType": "prometheus"})
    assert sorted(gang_of(cluster.run("allocate"), "g").not_modelled) == sorted([NUMA, USAGE])


@pytest.mark.parametrize("value, weight", [("2", 2.0), ("-3", 0.0), ("much", 1.0), ("", 1.0)])
def test_weight_of_historic_use_is_read(monkeypatch: pytest.MonkeyPatch, value: str, weight: float) -> None:
    found: list[float] = []
    monkeypatch.setattr("gangdash.engine.rules.fairshare.divide_cluster", lambda _, k: found.append(k))
    cluster = Cluster()
    cluster.plugin("proportion", kValue=value)
    _open(cluster)
    assert found == [weight]


def test_without_predicates_every_node_with_room_takes_a_pod() -> None:
    cluster = Cluster()
    cluster.node("n0", 1, cordoned=True)
    cluster.gang("g", 1)
    _without(cluster, "predicates")
    assert outcome(cluster.run("allocate"), "g") == "bound"


def test_without_priority_the_older_gang_goes_first() -> None:
    cluster = Cluster()
    cluster.node("n0", 1)
    cluster.gang("old", 1, age=900)
    cluster.gang("urgent", 1, kind="inference")
    _without(cluster, "priority")
    assert outcome(cluster.run("allocate"), "old") == "bound"


def test_order_of_plugins_is_the_order_of_their_say() -> None:
    """A gang below its minimum before one of higher priority, where elastic is listed first."""
    cluster = Cluster()
    cluster.node("n0", 2)
    cluster.gang("grown", 2, minimum=1, kind="inference", on=["n0"])
    cluster.gang("new", 1)
    assert outcome(cluster.run("allocate"), "grown") == "bound"
    first = [plugin for plugin in cluster.config.plugins if plugin.name == "elastic"]
    _without(cluster, "elastic")
    cluster.config = replace(cluster.config, plugins=(*first, *cluster.config.plugins))
    assert outcome(cluster.run("allocate"), "new") == "bound"


def test_without_subgrouporder_names_decide() -> None:
    cluster = Cluster()
    cluster.config = SchedulerConfig(plugins=(Plugin("predicates"),))
    session = _open(cluster)
    assert session.sub_group_order.__name__ == "_name_key"
    assert not session.charges_queues


@pytest.mark.parametrize(
    "fields, plain",
    [({}, True), ({"nominated_node": "n0"}, False)],
    ids=["plain", "nominated"],
)
def test_tasks_that_tell_equal_nodes_apart(fields: dict[str, str], plain: bool) -> None:
    cluster = Cluster()
    cluster.node("n0", 1)
    cluster.gang("g", 1, pod=fields)
    session = _open(cluster)
    assert choices_of(session).is_plain(next(iter(session.tasks.values()))) is plain


def test_ports_are_asked_of_every_node() -> None:
    cluster = Cluster()
    for name in ("a", "b"):
        cluster.node(name, 4)
    cluster.gang("g", 2, 1)
    for index, pod in enumerate(cluster.pods):
        main = replace(pod.containers[0], host_ports=(HostPort(80),))
        cluster.pods[index] = replace(pod, containers=(main,))
    assert sorted(str(node) for node in places(cluster.run("allocate"), "g").values()) == ["a", "b"]


def test_without_proportion_the_older_queue_goes_first() -> None:
    cluster = Cluster()
    cluster.node("n0", 1)
    cluster.queue("a", 1, created=200.0, priority=500)
    cluster.queue("b", 1, created=100.0)
    for queue in ("a", "b"):
        cluster.gang(f"of-{queue}", 1, 1, queue=queue)
    assert outcome(cluster.run("allocate"), "of-a") == "bound"
    _without(cluster, "proportion")
    assert outcome(cluster.run("allocate"), "of-b") == "bound"
