"""A gang's function or task: the nearest label wins, and the namespace always knows."""

from __future__ import annotations

from typing import Any

import pytest

from gangdash.engine.chain import Chain
from gangdash.engine.chain.ladder import leads
from gangdash.engine.chain.nvcf import Function, function_of
from tests.chain import world as w

READ = (*w.ALL_READ, "Namespace", "MiniService", "ICMSRequest", "StatefulSet")


def _function(*objects: w.Object) -> Function | None:
    chain = Chain(w.snapshot(*objects, read=READ))
    group = chain.podgroups["sr-1/pg"]
    return function_of(chain, group.meta, chain.pods)


def _namespace(**labels: str) -> w.Object:
    return w.thing("v1", "Namespace", "sr-1", namespace="", labels=labels)


def _instance(where: str) -> list[w.Object]:
    """Return an instance that carries its version's id in one place."""
    labels: dict[str, Any] = {"function-version-id": "v-1"}
    at = {place: labels if place == where else {} for place in ("label", "owner", "pod", "namespace")}
    owner = w.thing("apps/v1", "StatefulSet", "fn", namespace="sr-1", labels=at["owner"])
    group = w.podgroup(owner, "pg", namespace="sr-1", labels=at["label"])
    pod = w.pod(owner, "fn-0", gang="", group="pg", namespace="sr-1", labels=dict(at["pod"]))
    return [_namespace(**at["namespace"]), owner, group, pod]


@pytest.mark.parametrize("where", ["label", "owner", "pod", "namespace"])
def test_nearest_that_says_it_is_believed(where: str) -> None:
    assert _function(*_instance(where)) == Function("Function", "v-1", where)


def test_request_behind_the_mini_service_is_the_last_resort() -> None:
    spec = {"namespace": "sr-1", "icmsRequestName": "req"}
    service = w.thing("nvca.nvcf.nvidia.io/v1alpha1", "MiniService", "sr-1-miniservice", namespace="", spec=spec)
    request = w.thing("nvca.nvcf.nvidia.io/v2beta1", "ICMSRequest", "req", namespace="nvcf-backend")
    request["spec"] = {"taskDetails": {"taskId": "t-1"}}

    assert _function(*_instance("nowhere"), service, request) == Function("Task", "t-1", "request", "sr-1-miniservice")


def test_nobody_says_so() -> None:
    assert _function(*_instance("nowhere")) is None


def test_function_leads_to_its_gangs() -> None:
    found = leads(Chain(w.snapshot(*_instance("namespace"), read=READ)))

    assert found["Function", "sr-1", "v-1", ""] == {"pg"}
