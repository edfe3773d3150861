"""The chain on a real API server with the real definitions: read without an oddity, and followed while it changes.

Runs when ``GANGDASH_LIVE_KUBECONFIG`` names an admin's kubeconfig of a throw-away cluster with the definitions of the
scheduler and of Grove.
"""

from __future__ import annotations

import gzip
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gangdash.engine.chain import Chain, standing_of
from gangdash.engine.chain.ladder import gangs_of, ladder_of
from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.kube.client import Client, open_client
from gangdash.kube.listing import read_cluster
from gangdash.kube.reading import Reading
from gangdash.snapshot.archive import snapshot_of
from tests.chain import world as w
from tests.live.cluster import LiveCluster, Object

LIVE = os.environ.get("GANGDASH_LIVE_KUBECONFIG", "")
SCENES = Path(__file__).parents[1] / "scenes"
RECORDED = sorted(path.name.removesuffix(".json.gz") for path in SCENES.glob("[a-z]-*.json.gz"))
NOT_MADE = frozenset({"Node", "Event"})
NAMESPACES = ("team", "serving", "team-a", "team-b", "default", "build")
DEFINITION = "leaderworkersets.leaderworkerset.x-k8s.io"

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(not LIVE, reason="GANGDASH_LIVE_KUBECONFIG names no cluster"),
]


@pytest.fixture
def cluster() -> Iterator[LiveCluster]:
    made = LiveCluster(LIVE)
    yield made
    made.remove()


@pytest.fixture(scope="module")
def api() -> Iterator[Client]:
    opened = open_client(LIVE)
    yield opened
    opened.close()


def namespaces(objects: list[Object]) -> list[Object]:
    """Return the namespaces that objects are in, as objects; those that every cluster has are left out."""
    names = {item["metadata"].get("namespace") for item in objects} - {None, "default", "kube-system"}
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": str(name)}} for name in sorted(names)]


def complete(objects: list[Object]) -> list[Object]:
    """Add what Grove's definitions require and no rule reads."""
    pods = {"podSpec": {"containers": [{"name": "main", "image": "example/worker:1"}]}}
    for item in objects:
        if item["kind"] == "PodCliqueSet":
            for clique in item["spec"]["template"]["cliques"]:
                clique["spec"] = {"roleName": clique["name"], "replicas": 2, "minAvailable": 2, **pods}
        elif item["kind"] == "PodClique":
            item["spec"] |= {"roleName": "decode", **pods}
    return objects


def without_oddity(reading: Reading) -> ClusterSnapshot:
    snapshot = snapshot_of(reading)
    assert snapshot.oddities == ()
    return snapshot


def test_a_chain_from_graph_to_pods_is_joined_as_on_paper(cluster: LiveCluster, api: Client) -> None:
    objects = complete(w.served())
    cluster.make([*namespaces(objects), *objects])
    chain = Chain(without_oddity(read_cluster(api)))
    top = next(top for top in chain.tops() if top.meta.namespace == "team")

    assert (top.kind, top.meta.name, top.api_version) == ("DynamoGraphDeployment", "llm", "nvidia.com/v1beta1")
    assert standing_of(chain, top) is None
    assert [gang.podgroups for gang in gangs_of(chain, top)] == [("pg-llm-0",)]
    [rung] = ladder_of(chain, top)
    layers = {layer.kind: layer for layer in rung.layers}
    assert list(layers) == ["DynamoGraphDeployment", "PodCliqueSet", "PodClique", "PodGang", "PodGroup", "Pod"]
    assert (layers["Pod"].wanted, layers["Pod"].placed, layers["Pod"].ready) == (2, 2, 2)


@pytest.mark.parametrize("scene", RECORDED)
def test_what_real_controllers_wrote_is_accepted_and_read_back(scene: str, cluster: LiveCluster, api: Client) -> None:
    """The definitions of the server prune what they do not know: what comes back is what a cluster can have."""
    dump = json.loads(gzip.decompress((SCENES / f"{scene}.json.gz").read_bytes()))
    objects = [item for item in dump["items"] if item["kind"] not in NOT_MADE]
    cluster.make([*namespaces(objects), *objects])
    reading = read_cluster(api)
    without_oddity(reading)

    for kind in {item["kind"] for item in objects} - {"Namespace"}:
        names = {(record.metadata.namespace or "", record.metadata.name) for record in reading.items[kind]}
        wanted = {
            (item["metadata"].get("namespace", ""), item["metadata"]["name"])
            for item in objects
            if item["kind"] == kind and not item["metadata"].get("deletionTimestamp")
        }
        assert wanted <= names, kind


def test_a_kind_that_appears_and_goes_is_followed(cluster: LiveCluster, api: Client) -> None:
    group, _, _ = DEFINITION.partition(".")
    definition: dict[str, Any] = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": DEFINITION},
        "spec": {
            "group": DEFINITION.removeprefix(f"{group}."),
            "names": {"kind": "LeaderWorkerSet", "plural": group, "singular": "leaderworkerset"},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                }
            ],
        },
    }
    first = read_cluster(api)
    assert first.statuses["LeaderWorkerSet"].reason == "not served"
    cluster.make([definition])
    assert _reason_becomes(api, "", first).items["LeaderWorkerSet"] == []
    cluster.make([{
        "apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet",
        "metadata": {"name": "one", "namespace": "default"}, "spec": {"replicas": 2},
    }])  # fmt: skip
    found = read_cluster(api, previous=first)
    assert [record.metadata.name for record in found.items["LeaderWorkerSet"]] == ["one"]
    cluster.remove()
    gone = _reason_becomes(api, "not served", found)
    assert "LeaderWorkerSet" not in gone.items


def _reason_becomes(api: Client, reason: str, previous: Reading) -> Reading:
    """Read until the server has come round to serving the kind, or to no longer doing so."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        reading = read_cluster(api, previous=previous)
        if reading.statuses["LeaderWorkerSet"].reason == reason:
            return reading
        time.sleep(0.5)
    pytest.fail(f"LeaderWorkerSet is still {reading.statuses['LeaderWorkerSet'].reason!r}")
