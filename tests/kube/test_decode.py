"""Single objects: what is kept, and which one is blamed for what."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from gangdash.kube import kinds
from gangdash.kube.decode import BadObjectError, decode_object, encodable
from gangdash.kube.records.base import Observed, Record
from tests.kube import raw


def encode_object(record: Record) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(msgspec.json.encode(encodable(record)))
    return content


def _decoded(content: dict[str, Any]) -> Any:
    kind = kinds.by_name()[content["kind"]]
    return decode_object(kind, json.dumps(content).encode(), kind.versions[0], "items[7]")


@pytest.mark.parametrize(
    "content,where,field",
    [
        (raw.pod("p", priority="high"), "Pod/team/p", "spec.priority"),
        (raw.pod("p", tolerations=[{}, {"key": 5}]), "Pod/team/p", "spec.tolerations[1].key"),
        (raw.thing("v1", "Pod", "p", "team", spec=[]), "Pod/team/p", "spec"),
        (raw.thing("v1", "Pod", "p", "team", metadata={"labels": {"a": 1}}), "Pod/team/p", "metadata.labels[...]"),
        (raw.thing("v1", "Pod", "p", "team", metadata={"creationTimestamp": "today"}), "Pod/team/p",
         "metadata.creationTimestamp"),
        ({"kind": "Pod", "metadata": {}}, "Pod/items[7]", "metadata"),
        ({"kind": "Pod", "metadata": {"name": 3}}, "Pod/items[7]", "metadata.name"),
        ({"kind": "Pod"}, "Pod/items[7]", ""),
        (raw.thing("apps/v1", "ReplicaSet", "r", "team", metadata={"uid": 1}), "ReplicaSet/team/r", "metadata.uid"),
        (raw.pod("p", priority=2**64), "Pod/team/p", "spec.priority"),
    ],
)  # fmt: skip
def test_bad_object_is_named_with_its_field(content: dict[str, Any], where: str, field: str) -> None:
    with pytest.raises(BadObjectError) as caught:
        _decoded(content)

    assert (caught.value.bad.object, caught.value.bad.field) == (where, field)
    assert caught.value.bad.problem


def test_null_is_absence() -> None:
    record = _decoded(
        {"kind": "Pod", "metadata": {"name": "p", "labels": None}, "spec": None, "status": {"phase": None}}
    )

    assert record.metadata.labels is None
    assert record.spec is None


def test_version_and_kind_are_filled_in() -> None:
    record = _decoded({"kind": "Pod", "metadata": {"name": "p"}})

    assert (record.api_version, record.kind) == ("v1", "Pod")


def test_encoded_object_has_the_shape_of_the_api() -> None:
    pod = raw.pod("p", volumes=[{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}], image="x")
    record = _decoded(pod)
    encoded = encode_object(record)

    assert encoded["spec"]["containers"] == pod["spec"]["containers"]
    assert encoded["spec"]["volumes"] == [{"name": "v", "ephemeral": {}}]
    assert encoded["metadata"]["creationTimestamp"] == raw.NOW
    assert "image" not in encoded["spec"]
    assert _decoded(encoded) == record


def test_observed_object_keeps_the_paths_of_its_kind() -> None:
    content = raw.thing(
        "grove.io/v1alpha1", "PodCliqueSet", "set", "team",
        spec={"replicas": 2, "unknown": 1, "template": {"cliques": [
            {"name": "a", "labels": {"app": "x"}, "spec": {"replicas": 3, "podSpec": {
                "containers": [{"name": "main", "image": "i", "env": [{"name": "TOKEN", "value": "s3cret"}]}]}}},
            "not an object",
        ]}},
        status={"conditions": [{"type": "T", "status": "True", "extra": 1}], "replicas": {"nested": "no number"}},
    )  # fmt: skip
    record = _decoded(content)

    assert isinstance(record, Observed)
    assert record.fields["spec"]["template"]["cliques"][0] == {
        "name": "a", "labels": {"app": "x"},
        "spec": {"replicas": 3, "podSpec": {"containers": [{"name": "main", "image": "i"}]}},
    }  # fmt: skip
    assert record.fields["status"]["conditions"] == [{"type": "T", "status": "True"}]
    assert "unknown" not in record.fields["spec"]
    assert "s3cret" not in json.dumps(encode_object(record))


def test_map_with_any_keys_is_pruned_below_them() -> None:
    services = {"decode": {"replicas": 1, "envs": [{"name": "A", "value": "s3cret"}]}, "prefill": None}
    record = _decoded(
        raw.thing("nvidia.com/v1alpha1", "DynamoGraphDeployment", "d", "team", spec={"services": services})
    )

    assert record.fields["spec"]["services"] == {"decode": {"replicas": 1}}


@pytest.mark.parametrize("kind", kinds.KINDS, ids=lambda kind: kind.name)
def test_every_kind_takes_an_object_that_has_only_a_name(kind: kinds.Kind) -> None:
    record = decode_object(kind, b'{"metadata":{"name":"x"}}', kind.versions[0], "items[0]")

    assert record.kind == kind.name
    assert encode_object(record)["metadata"] == {"name": "x"}


def test_deep_nesting_in_one_object_is_its_own_fault() -> None:
    content = b'{"metadata":{"name":"x"},"spec":' + b"[" * 100_000
    with pytest.raises(BadObjectError):
        decode_object(kinds.by_name()["Pod"], content, "v1", "items[0]")
