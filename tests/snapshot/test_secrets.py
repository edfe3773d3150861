"""Nothing that may be a secret outlives the decoder, in no form and from no kind."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from gangdash.engine.model import digest
from gangdash.kube import kinds
from gangdash.snapshot.archive import load_bytes, snapshot_of, write_dump
from tests.kube import raw

SECRET = "hunter2"

_CONTAINER = {
    "name": "main",
    "image": "example/train:1",
    "command": ["sh", "-c", f"echo {SECRET}"],
    "args": [f"--password={SECRET}", f"--podclique={SECRET}"],
    "env": [{"name": f"A_{SECRET}", "value": SECRET},
            {"name": "B", "valueFrom": {"secretKeyRef": {"name": SECRET, "key": SECRET}}},
            {"name": "C", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": SECRET}}}],
    "envFrom": [{"secretRef": {"name": SECRET}}, {"configMapRef": {"name": "more"}, "prefix": SECRET}],
    "lifecycle": {"preStop": {"exec": {"command": [SECRET]}}},
    "livenessProbe": {"httpGet": {"httpHeaders": [{"name": "Authorization", "value": SECRET}]}},
}  # fmt: skip
_POD_SPEC = {
    "containers": [_CONTAINER],
    "initContainers": [_CONTAINER],
    "imagePullSecrets": [{"name": SECRET}],
    "serviceAccountName": SECRET,
    "volumes": [{"name": "a", "secret": {"secretName": SECRET}}, {"name": "b", "hostPath": {"path": SECRET}},
                {"name": "c", "csi": {"nodePublishSecretRef": {"name": SECRET}, "volumeAttributes": {"k": SECRET}}},
                {"name": "d", "projected": {"sources": [{"secret": {"name": SECRET}}]}}],
}  # fmt: skip
_ANNOTATIONS = {
    "kubectl.kubernetes.io/last-applied-configuration": json.dumps({"env": SECRET}),
    "vault.hashicorp.com/agent-inject": SECRET,
    "pod-group-name": "gang",
}
_METADATA = {
    "annotations": _ANNOTATIONS,
    "managedFields": [{"manager": SECRET, "fieldsV1": {"f:spec": {SECRET: {}}}}],
    "selfLink": SECRET,
}


def _object(kind: kinds.Kind) -> dict[str, Any]:
    """An object with secrets wherever a pod, or a template of one, may have them."""
    template = {"metadata": _METADATA, "spec": _POD_SPEC}
    groups = [{"groupName": "g", "template": template, "rayStartParams": {"redis-password": SECRET}}]
    cliques = [{"name": "c", "annotations": _ANNOTATIONS, "spec": {"podSpec": _POD_SPEC}}]
    spec = _POD_SPEC | {
        "template": template | {"cliques": cliques}, "podSpec": _POD_SPEC, "headGroupSpec": groups[0],
        "workerGroupSpecs": groups, "rayClusterSpec": {"headGroupSpec": groups[0], "workerGroupSpecs": groups},
        "pytorchReplicaSpecs": {"Worker": {"template": template}}, "envs": _CONTAINER["env"],
        "services": {"s": {"envs": _CONTAINER["env"], "extraPodSpec": _POD_SPEC}}, "entrypoint": SECRET,
        "runtimeEnvYAML": SECRET, "components": [{"name": "x", "podTemplate": template}],
        "overrides": {"profilingJob": {"template": template}}, "leaderWorkerTemplate": {"workerTemplate": template},
        "replicatedJobs": [{"name": "j", "template": {"spec": {"template": template}}}],
        "usageDBConfig": {"connectionString": SECRET, "clientType": "prometheus"},
        "args": {"token": SECRET, "schedule-period": "2s"},
        "parameters": {"secret": SECRET}, "config": [{"opaque": {"parameters": SECRET}}],
    }  # fmt: skip
    data = {"password": SECRET, "config.yaml": f"database: {SECRET}"}
    ended = {"terminated": {"exitCode": 1, "reason": "Error", "message": SECRET}}
    status = {"containerStatuses": [{"name": "main", "state": ended, "lastState": ended}]}
    webhook = {"name": "w", "clientConfig": {"caBundle": SECRET, "url": f"https://{SECRET}"}}
    return raw.thing(
        kind.api_version(kind.versions[0]), kind.name, "x", "team" if kind.namespaced else "",
        metadata=_METADATA, spec=spec, data=data, binaryData=data, stringData=data, parameters={"a": SECRET},
        webhooks=[webhook], status=status,
    )  # fmt: skip


@pytest.mark.parametrize("kind", kinds.KINDS, ids=lambda kind: kind.name)
def test_no_secret_survives_from_any_kind(kind: kinds.Kind) -> None:
    reading = load_bytes(json.dumps(raw.dump(_object(kind))).encode(), name="dump")
    snapshot = snapshot_of(reading)

    assert snapshot.was_read(kind.name)
    assert reading.items[kind.name]
    assert SECRET.encode() not in write_dump(reading)
    assert SECRET not in digest.text(snapshot)
    assert SECRET.encode() not in msgspec.json.encode(reading.items)


def test_what_placement_needs_survives() -> None:
    pod = snapshot_of(load_bytes(json.dumps(raw.dump(_object(kinds.by_name()["Pod"]))).encode(), name="dump")).pods[0]

    assert pod.meta.annotations == {"pod-group-name": "gang"}
    assert pod.containers[0].config_maps == ("settings", "more")
    assert pod.containers[0].name == "main"


def test_last_words_are_kept_of_a_container_that_never_ran() -> None:
    pod = raw.pod("p")
    ended = {"terminated": {"exitCode": 128, "reason": "StartError", "message": "no such device"}}
    pod["status"]["containerStatuses"] = [{"name": "main", "lastState": ended}]
    snapshot = snapshot_of(load_bytes(json.dumps(raw.dump(pod)).encode(), name="dump"))

    assert snapshot.pods[0].container_states[0].last_message == "no such device"


def test_no_config_map_content_survives_a_scheduler_snapshot() -> None:
    config_map = raw.thing("v1", "ConfigMap", "c", "team", data={"config.yaml": SECRET, "x": SECRET})
    reading = load_bytes(json.dumps(raw.scheduler_snapshot(configMaps=[config_map])).encode(), name="snapshot")

    assert snapshot_of(reading).config_maps == {"team/c"}
    assert SECRET.encode() not in write_dump(reading)


def test_scheduler_configuration_is_kept_without_its_connection() -> None:
    text = (
        "actions: allocate, reclaim\ntiers:\n- plugins:\n  - name: proportion\n"
        f"usageDBConfig:\n  clientType: prometheus\n  connectionString: http://{SECRET}@prometheus\n"
    )
    config_map = raw.config_map("kai-scheduler-default", "kai-scheduler", config_yaml=text)
    reading = load_bytes(json.dumps(raw.dump(config_map, raw.shard("default"))).encode(), name="dump")
    config = snapshot_of(reading).shards[0].config

    assert config.actions == ("allocate", "reclaim")
    assert config.usage_db == {"clientType": "prometheus"}
    assert SECRET.encode() not in write_dump(reading)
