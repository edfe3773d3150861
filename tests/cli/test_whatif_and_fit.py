"""The what-if, fit and bench commands on one small cluster: a cordoned node, a queue limit, two racks."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

RACK = "topology.example.com/rack"


def _node(name: str, rack: str, *, cordoned: bool = False) -> dict[str, object]:
    amounts = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": "8"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {RACK: rack, "kubernetes.io/hostname": name}},
        "spec": {"unschedulable": True} if cordoned else {},
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _gang(name: str, queue: str, pods: int, gpus: int) -> list[dict[str, object]]:
    group: dict[str, object] = {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "team", "uid": name, "creationTimestamp": "2026-11-30T08:00:00Z"},
        "spec": {"queue": queue, "minMember": pods, "priorityClassName": "train"},
    }
    members: list[dict[str, object]] = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{name}-{i}",
                "namespace": "team",
                "uid": f"{name}-{i}",
                "annotations": {"pod-group-name": name},
                "creationTimestamp": "2026-11-30T08:00:00Z",
            },
            "spec": {
                "schedulerName": "kai-scheduler",
                "containers": [{"name": "main", "resources": {"requests": {"nvidia.com/gpu": str(gpus)}}}],
            },
            "status": {"phase": "Pending"},
        }
        for i in range(pods)
    ]
    return [group, *members]


def _queue(name: str, parent: str = "", limit: int = -1) -> dict[str, object]:
    free = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    spec: dict[str, object] = {"resources": {"cpu": free, "memory": free, "gpu": {**free, "limit": limit}}}
    if parent:
        spec["parentQueue"] = parent
    return {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": name}, "spec": spec}


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    topology = {
        "apiVersion": "kai.scheduler/v1alpha1",
        "kind": "Topology",
        "metadata": {"name": "fabric"},
        "spec": {"levels": [{"nodeLabel": RACK}, {"nodeLabel": "kubernetes.io/hostname"}]},
    }
    train = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "train"},
        "value": 50,
    }
    items = [
        *(_node(f"a{i}", "a", cordoned=i == 2) for i in range(3)),
        _node("b0", "b"),
        topology,
        train,
        _queue("dept"),
        _queue("open", "dept"),
        _queue("capped", "dept", limit=4),
        *_gang("wide", "open", 4, 8),
        *_gang("capped", "capped", 1, 8),
    ]
    file = tmp_path / "dump.json"
    kinds = ["Node", "Pod", "PodGroup", "Queue", "Topology", "PriorityClass", "BindRequest"]
    body = {"apiVersion": "v1", "kind": "List", "asOf": "2026-11-30T08:10:00Z", "read": kinds, "items": items}
    file.write_text(json.dumps(body))
    return file


def _run(command: str, *args: object, **options: object) -> str:
    out = StringIO()
    call_command(command, *map(str, args), stdout=out, **options)
    return out.getvalue()


def test_whatif_tells_what_starts_and_what_it_costs(dump: Path) -> None:
    answer = json.loads(_run("whatif", dump, "--change", "uncordon:a2", "--format", "json"))
    assert answer["starts"] == ["team/wide"]
    assert (answer["before"]["gpus_waiting"], answer["after"]["gpus_waiting"]) == (40, 8)
    assert answer["evicts"] == []
    assert answer["changes"] == [{"kind": "uncordon", "object": "a2"}]


def test_whatif_applies_several_changes_together(dump: Path, tmp_path: Path) -> None:
    file = tmp_path / "changes.json"
    file.write_text('[{"kind": "raise_limit", "object": "capped", "gpu": 8}]')
    text = _run("whatif", dump, "--change", "add_nodes:b0:count=2", "--changes", file)
    assert "team/capped, team/wide" in text
    assert "Starts 2 gangs" in text


@pytest.mark.parametrize(
    "args, words",
    [
        ((), "at least one --change"),
        (("--change", "uncordon:zz"), "no node 'zz'"),
        (("--changes", "/nonexistent.json"), "No such file"),
    ],
)
def test_whatif_says_what_is_wrong_in_one_line(dump: Path, args: tuple[str, ...], words: str) -> None:
    with pytest.raises(CommandError, match=words) as caught:
        _run("whatif", dump, *args)
    assert caught.value.returncode == 255
    assert "\n" not in str(caught.value)


def test_fit_counts_free_gpus_by_domain(dump: Path) -> None:
    domains = json.loads(_run("fit", dump, "--format", "json"))["domains"]
    whole = domains[0]
    assert (whole["gpus"], whole["free"], whole["blocked"]) == (32, 24, {"cordoned": 8})
    racks = {tuple(d["path"]): d["largest"]["8"] for d in domains if d["level"] == RACK}
    assert racks == {("a",): 2, ("b",): 1}
    assert "whole cluster" in _run("fit", dump, "--level", "rack")


def test_fit_asks_the_replay_with_policy(dump: Path) -> None:
    text = _run("fit", dump, "--shape", "8gpu", "--size", "1")
    lines = {line.split()[0]: line for line in text.splitlines()}
    assert lines["open"].split(maxsplit=1)[1].startswith("Fits now")
    assert not lines["capped"].split(maxsplit=1)[1].startswith("Fits now")


def test_fit_keeps_a_gang_in_one_domain(dump: Path) -> None:
    fits = json.loads(_run("fit", dump, "--shape", "8gpu", "--size", "2", "--level", "rack", "--queue", "open",
                           "--format", "json"))  # fmt: skip
    assert fits["effect"]["starts"] == ["gangdash/what-fits"]
    waits = json.loads(_run("fit", dump, "--shape", "8gpu", "--size", "3", "--level", "rack", "--queue", "open",
                            "--format", "json"))  # fmt: skip
    assert waits["effect"]["starts"] == []


def test_fit_names_what_it_knows(dump: Path) -> None:
    with pytest.raises(CommandError, match=r"levels: kubernetes\.io/hostname, topology\.example\.com/rack"):
        _run("fit", dump, "--shape", "8gpu", "--level", "planet")
    with pytest.raises(CommandError, match="leaf queues: capped, open"):
        _run("fit", dump, "--shape", "8gpu", "--queue", "nobody")


def test_bench_prints_one_row_a_file(dump: Path) -> None:
    lines = _run("bench", dump).splitlines()
    assert lines[0].split()[:3] == ["file", "nodes", "waiting"]
    assert lines[1].split()[:3] == ["dump.json", "4", "2"]
