"""Makes objects on a real API server from plain manifests and takes them away again.

Owners are made before what they own, and references are rewritten to the uids that the server gave, as controllers
would have it. Finalizers are left out: nobody is there who would remove them.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Sequence
from typing import Any

import requests
from kubernetes.client import Configuration
from kubernetes.config import load_kube_config

from gangdash.kube import kinds

Object = dict[str, Any]
POD_SPEC = frozenset({
    "containers", "initContainers", "schedulerName", "nodeName", "schedulingGates", "nodeSelector", "tolerations",
    "terminationGracePeriodSeconds", "restartPolicy",
})  # fmt: skip
"""The other fields name service accounts, volumes and classes that this cluster has not."""
CONTAINER = frozenset({"name", "image", "resources", "args"})
SECONDS = 30.0


class LiveCluster:
    """One API server, with what was made on it."""

    def __init__(self, kubeconfig: str) -> None:
        found = Configuration()
        load_kube_config(config_file=kubeconfig, client_configuration=found)
        self._host = str(found.host)
        self._session = requests.Session()
        # The server's own authority counts, whatever the environment names for others.
        self._session.trust_env, self._session.verify = False, found.ssl_ca_cert
        self._session.headers["Authorization"] = found.auth_settings()["BearerToken"]["value"]
        self._uids: dict[str, str] = {}
        self._made: list[str] = []

    def make(self, objects: Iterable[Object]) -> None:
        """Create objects, owners first, and give them the status that they come with."""
        for item in owners_first(list(objects)):
            meta = item["metadata"]
            body = {**item, "metadata": self._metadata(meta)}
            status = body.pop("status", None)
            if item["kind"] == "Pod":
                body["spec"] = pod_spec(item["spec"])
            made = self._create(path_of(item), body)
            self._uids[meta.get("uid", "")] = made["metadata"]["uid"]
            if status:
                with contextlib.suppress(requests.HTTPError):  # a kind without a status of its own
                    self._call("PATCH", f"{path_of(item)}/{meta['name']}/status", {"status": status})

    def _metadata(self, meta: Object) -> Object:
        kept = {name: meta[name] for name in ("name", "namespace", "labels", "annotations") if meta.get(name)}
        owners = [
            {**ref, "uid": self._uids[ref["uid"]]}
            for ref in meta.get("ownerReferences", ())
            if ref["uid"] in self._uids
        ]
        return {**kept, "ownerReferences": owners} if owners else kept

    def _create(self, path: str, body: Object) -> Object:
        """Create one object; a namespace takes a moment until pods may be made in it."""
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                made: Object = self._call("POST", path, body)
            except requests.HTTPError as error:
                if error.response.status_code != 403 or time.monotonic() > deadline:
                    raise
                time.sleep(0.2)
            else:
                self._made.append(f"{path}/{body['metadata']['name']}")
                return made

    def remove(self, paths: Iterable[str] | None = None) -> None:
        """Delete what was made, newest first, or the paths named, and wait until it is gone."""
        gone = self._made[::-1] if paths is None else list(paths)
        for path in gone:
            with contextlib.suppress(requests.HTTPError):
                self._call("DELETE", path, {"gracePeriodSeconds": 0})
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline and any(self._is_there(path) for path in gone):
            time.sleep(0.2)
        self._made = [path for path in self._made if path not in gone]

    def _is_there(self, path: str) -> bool:
        try:
            self._call("GET", path, None)
        except requests.HTTPError as error:
            if error.response.status_code == 404:
                return False
            raise
        return True

    def _call(self, method: str, path: str, body: Object | None) -> Any:
        """Ask the server; raise ``requests.HTTPError`` with what it says where it refuses."""
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        answer = self._session.request(
            method, f"{self._host}{path}", json=body, headers={"Content-Type": kind}, timeout=10
        )
        if not answer.ok:
            raise requests.HTTPError(f"{method} {path}: {answer.text[:500]}", response=answer)
        return answer.json()


def path_of(item: Object) -> str:
    """Return the path of the list that an object belongs to."""
    if item["kind"] == "CustomResourceDefinition":
        return "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    kind = kinds.by_name()[item["kind"]]
    version = item["apiVersion"].rpartition("/")[2]
    root = f"/apis/{kind.group}/{version}" if kind.group else f"/api/{version}"
    namespace = item["metadata"].get("namespace")
    return f"{root}/namespaces/{namespace}/{kind.plural}" if namespace else f"{root}/{kind.plural}"


def pod_spec(spec: Object) -> Object:
    kept = {name: value for name, value in spec.items() if name in POD_SPEC}
    for name in ("containers", "initContainers"):
        if name in kept:
            kept[name] = [_container(container) for container in kept[name]]
    return kept


def _container(container: Object) -> Object:
    return {"image": "example/worker:1", **{name: value for name, value in container.items() if name in CONTAINER}}


def owners_first(objects: Sequence[Object]) -> list[Object]:
    """Order objects so that each comes after those that own it; the order is kept otherwise."""
    uids = {item["metadata"].get("uid") for item in objects}
    done: set[str] = set()
    ordered: list[Object] = []
    rest = list(objects)
    while rest:
        ready = [item for item in rest if not _owners(item) & uids - done]
        if not ready:
            raise ValueError("these objects own each other")
        ordered += ready
        done |= {item["metadata"].get("uid", "") for item in ready}
        rest = [item for item in rest if item not in ready]
    return ordered


def _owners(item: Object) -> set[str]:
    return {ref["uid"] for ref in item["metadata"].get("ownerReferences", ())}
