"""A kind that could not be read is never taken as empty, whatever the rest of the objects says."""

from __future__ import annotations

import gzip
import json
from functools import cache
from typing import Any

import pytest

from gangdash.documents import ExplanationDocument
from gangdash.snapshot.archive import load_bytes, snapshot_of
from tests.engine.builders import ALL_READ, Cluster
from tests.explain.helpers import causes, explain, said, scene_files

# What may be said where a kind was not read, beside what was said when it was and beside that it was not read. Events,
# owners and controllers are evidence: without them a less specific answer holds, which rests on what was read.
LESS_SPECIFIC: dict[str, set[str]] = {
    "ClusterTopologyBinding": {"RUNNING"},
    "DaemonSet": {"NODE_TOO_SMALL"},
    "Deployment": {"FITS_NOW", "PLACEABLE_NOT_PLACED"},
    "Event": {"BIND_FAILING", "EMPTY_PODGROUP", "FITS_NOW", "PLACEABLE_NOT_PLACED", "QUEUE_LIMIT", "RECLAIMED"},
    "Job": {"QUEUE_LIMIT"},
    "Node": {"RUNNING"},
    "NodeResourceTopology": {"PLACEABLE_NOT_PLACED"},
    "PodCliqueSet": {"RUNNING"},
    "PodGang": {"SCHEDULING_GATE"},
    "PodGroup": {"NAMESPACE_QUOTA", "SCHEDULING_GATE", "UPSTREAM_STAGE"},
    "PriorityClass": {"RUNNING"},
    "Queue": {"RUNNING"},
    "RayCluster": {"MUTUAL_WAIT", "QUEUE_LIMIT"},
    "SchedulingShard": {"PLACEABLE_NOT_PLACED"},
    "Workload": {"RUNNING"},
}
LARGEST = 60_000


def told(dump: dict[str, Any]) -> dict[tuple[str, str], ExplanationDocument]:
    snapshot = snapshot_of(load_bytes(json.dumps(dump).encode(), name="scene"))
    return {(entry.gang.kind, entry.gang.key): entry for entry in causes(snapshot)}


@cache
def codes_of(name: str) -> dict[tuple[str, str], str]:
    """Return what is said of each gang of a scene when all its kinds are read."""
    return {key: str(entry.code) for key, entry in told(dict(dumps())[name]).items()}


def worse(name: str, dump: dict[str, Any], kind: str) -> list[str]:
    """Return what is said without the kind and is neither what was said with it nor allowed in its place."""
    was, wrong = codes_of(name), []
    for key, entry in told(without(dump, kind)).items():
        code, before = str(entry.code), was.get(key, "")
        if code not in {before, "NOT_READ"} | LESS_SPECIFIC.get(kind, set()):
            wrong.append(f"{name} without {kind} {key}: {before or 'nothing'} became {code}: {entry.sentence}")
    return wrong


def without(dump: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return the dump of a reading that was refused this kind."""
    items = [item for item in dump["items"] if item["kind"] != kind]
    return dump | {"items": items, "read": [other for other in dump["read"] if other != kind]}


@cache
def dumps() -> list[tuple[str, dict[str, Any]]]:
    found = []
    for file in scene_files():
        text = gzip.decompress(file.read_bytes())
        dump = json.loads(text)
        if len(text) <= LARGEST and dump.get("read") and dump.get("asOf"):
            found.append((file.name, dump))
    return found


@pytest.mark.parametrize("kind", ["Node", "Pod", "PodGroup", "PriorityClass", "Queue", "SchedulingShard", "Topology"])
def test_nothing_is_concluded_from_a_kind_that_was_not_read(kind: str) -> None:
    found = [line for name, dump in dumps() if kind in dump["read"] for line in worse(name, dump, kind)]
    assert not found, "\n".join(found)


def test_every_other_kind_is_evidence_and_its_absence_proves_nothing() -> None:
    basic = {"Node", "Pod", "PodGroup", "Queue"}
    found = [
        line
        for name, dump in dumps()
        for kind in sorted({item["kind"] for item in dump["items"]} - basic)
        for line in worse(name, dump, kind)
    ]
    assert not found, "\n".join(found)


def test_few_scenes_are_left_out_by_their_size() -> None:
    assert len(dumps()) > 60


def without_priorities(gpus: int, *, told: int | None) -> ExplanationDocument:
    """Explain a gang of a PriorityClass that was not read; its pods and those of a holder may tell their priority."""
    cluster = Cluster()
    cluster.node("n1", 8)
    cluster.gang("hold", 1, 8, kind="build", on=["n1"], pod={"priority": told})
    cluster.gang("g", 1, gpus, pod={"priority": told})
    cluster.extra |= {"priority_classes": (), "read": ALL_READ - {"PriorityClass"}}
    return explain(cluster)


def test_priority_that_nothing_tells_leaves_no_verdict() -> None:
    entry = without_priorities(8, told=None)
    assert said(entry) == ("NO_VERDICT", "NOT_READ")
    assert entry.binding[0].scope == "PriorityClass"


def test_priority_that_pods_tell_is_as_good_as_its_class() -> None:
    assert said(without_priorities(8, told=100)) == ("NO_FIT", "GPUS_BUSY")


def test_what_never_fits_does_so_at_any_priority() -> None:
    assert said(without_priorities(9, told=None)) == ("NO_FIT", "NODE_TOO_SMALL")
