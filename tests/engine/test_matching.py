"""Labels, terms, taints and host ports: what matches what."""

from __future__ import annotations

import pytest

from gangdash.engine.model.meta import Meta
from gangdash.engine.model.node import Node
from gangdash.engine.model.pod import Container, HostPort, Pod
from gangdash.engine.model.selectors import (
    Affinity,
    LabelSelector,
    NodeSelectorTerm,
    Requirement,
    Taint,
    Toleration,
)
from gangdash.engine.rules import matching

LABELS = {"zone": "a", "size": "8", "empty": ""}
NODE = Node(Meta("n0", labels=LABELS))


@pytest.mark.parametrize(
    "operator, key, values, expected",
    [
        ("In", "zone", ("a", "b"), True),
        ("In", "zone", ("b",), False),
        ("In", "none", ("a",), False),
        ("NotIn", "zone", ("b",), True),
        ("NotIn", "zone", ("a",), False),
        ("NotIn", "none", ("a",), True),
        ("Exists", "empty", (), True),
        ("Exists", "none", (), False),
        ("DoesNotExist", "none", (), True),
        ("DoesNotExist", "zone", (), False),
        ("Gt", "size", ("7",), True),
        ("Gt", "size", ("8",), False),
        ("Lt", "size", ("9",), True),
        ("Lt", "size", ("8",), False),
        ("Gt", "zone", ("7",), False),
        ("Gt", "size", ("seven",), False),
        ("Gt", "size", ("1", "2"), False),
        ("Gt", "none", ("7",), False),
        ("Near", "zone", ("a",), False),
    ],
)
def test_requirements(operator: str, key: str, values: tuple[str, ...], *, expected: bool) -> None:
    assert matching.requirement_matches(Requirement(key, operator, values), LABELS) is expected


def test_no_selector_matches_nothing_and_an_empty_one_everything() -> None:
    assert not matching.selector_matches(None, LABELS)
    assert matching.selector_matches(LabelSelector(), LABELS)
    assert not matching.selector_matches(LabelSelector({"zone": "b"}), LABELS)
    both = LabelSelector({"zone": "a"}, (Requirement("size", "In", ("9",)),))
    assert not matching.selector_matches(both, LABELS)


@pytest.mark.parametrize(
    "terms, expected",
    [
        pytest.param((), False, id="no term matches no node"),
        pytest.param((NodeSelectorTerm(),), False, id="an empty term neither"),
        pytest.param((NodeSelectorTerm((Requirement("zone", "In", ("a",)),)),), True, id="labels"),
        pytest.param(
            (NodeSelectorTerm((Requirement("zone", "In", ("a",)), Requirement("size", "Gt", ("8",)))),),
            False,
            id="all of a term",
        ),
        pytest.param(
            (NodeSelectorTerm(), NodeSelectorTerm((Requirement("zone", "Exists"),))), True, id="any of the terms"
        ),
        pytest.param((NodeSelectorTerm((), (Requirement("metadata.name", "In", ("n0",)),)),), True, id="its name"),
        pytest.param((NodeSelectorTerm((), (Requirement("metadata.name", "In", ("n1",)),)),), False, id="another name"),
        pytest.param((NodeSelectorTerm((), (Requirement("metadata.name", "NotIn", ("n1",)),)),), True, id="not a name"),
        pytest.param(
            (NodeSelectorTerm((), (Requirement("metadata.name", "NotIn", ("n0",)),)),), False, id="not its name"
        ),
        pytest.param(
            (NodeSelectorTerm((), (Requirement("metadata.name", "In", ("n0", "n1")),)),), False, id="two names"
        ),
        pytest.param((NodeSelectorTerm((), (Requirement("metadata.uid", "In", ("n0",)),)),), False, id="another field"),
        pytest.param((NodeSelectorTerm((), (Requirement("metadata.name", "Exists"),)),), False, id="another operator"),
    ],
)
def test_required_node_affinity(terms: tuple[NodeSelectorTerm, ...], *, expected: bool) -> None:
    pod = Pod(Meta("p"), affinity=Affinity(node_required=terms))
    assert matching.node_matches_pod(pod, NODE) is expected
    assert matching.has_node_constraint(pod)


def test_node_selector_and_affinity_must_both_match() -> None:
    fits = Affinity(node_required=(NodeSelectorTerm((Requirement("zone", "Exists"),)),))
    assert matching.node_matches_pod(Pod(Meta("p"), node_selector={"zone": "a"}, affinity=fits), NODE)
    assert not matching.node_matches_pod(Pod(Meta("p"), node_selector={"zone": "b"}, affinity=fits), NODE)
    assert matching.node_matches_pod(Pod(Meta("p"), affinity=Affinity()), NODE)
    assert not matching.has_node_constraint(Pod(Meta("p"), affinity=Affinity()))


def _named(*names: str) -> NodeSelectorTerm:
    return NodeSelectorTerm((), tuple(Requirement("metadata.name", "In", (name,)) for name in names))


@pytest.mark.parametrize(
    "terms, expected",
    [
        ((_named("a", "b"),), True),
        ((_named("a"),), False),
        ((_named("a", "b"), _named("c")), False),
        ((_named("a", "b"), NodeSelectorTerm((Requirement("x", "Exists"),))), False),
        ((), False),
    ],
)
def test_names_that_exclude_each_other(terms: tuple[NodeSelectorTerm, ...], *, expected: bool) -> None:
    assert matching.names_conflict(Pod(Meta("p"), affinity=Affinity(node_required=terms))) is expected


@pytest.mark.parametrize(
    "toleration, expected",
    [
        (Toleration("gpu", "Equal", "yes", "NoSchedule"), True),
        (Toleration("gpu", "", "yes"), True),
        (Toleration("gpu", "Equal", "no", "NoSchedule"), False),
        (Toleration("gpu", "Exists"), True),
        (Toleration("", "Exists"), True),
        (Toleration("cpu", "Exists"), False),
        (Toleration("gpu", "Exists", effect="NoExecute"), False),
        (Toleration("gpu", "Lt", "yes"), False),
    ],
)
def test_tolerations(toleration: Toleration, *, expected: bool) -> None:
    taint = Taint("gpu", "yes", "NoSchedule")
    node = Node(Meta("n0"), taints=(Taint("soft", "", "PreferNoSchedule"), taint))
    assert matching.tolerates((toleration,), taint) is expected
    found = matching.untolerated_taint(Pod(Meta("p"), tolerations=(toleration,)), node)
    assert found is (None if expected else taint)


@pytest.mark.parametrize(
    "wanted, used, expected",
    [
        (HostPort(80), HostPort(80), True),
        (HostPort(80), HostPort(81), False),
        (HostPort(80, "UDP"), HostPort(80, "TCP"), False),
        (HostPort(80, host_ip="10.0.0.1"), HostPort(80, host_ip="10.0.0.2"), False),
        (HostPort(80, host_ip="10.0.0.1"), HostPort(80, host_ip="10.0.0.1"), True),
        (HostPort(80, host_ip="10.0.0.1"), HostPort(80), True),
        (HostPort(80), HostPort(80, host_ip="10.0.0.1"), True),
        (HostPort(80, ""), HostPort(80, "TCP"), True),
    ],
)
def test_host_ports(wanted: HostPort, used: HostPort, *, expected: bool) -> None:
    assert matching.ports_conflict((wanted,), (used,)) is expected


def test_ports_of_init_containers_do_not_count() -> None:
    pod = Pod(
        Meta("p"),
        containers=(
            Container("main", host_ports=(HostPort(80), HostPort(0))),
            Container("side", "sidecar", host_ports=(HostPort(81),)),
            Container("init", "init", host_ports=(HostPort(82),)),
        ),
    )
    assert [port.port for port in matching.host_ports(pod)] == [80, 81]
