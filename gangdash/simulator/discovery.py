"""Discovery: which groups, versions and resources the server says it has.

Only the plain documents, not the aggregated one: clients fall back to these.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from gangdash.simulator.kinds import KINDS, Kind

VERSION = {
    "major": "1",
    "minor": "35",
    "gitVersion": "v1.35.4",
    "gitTreeState": "clean",
    "goVersion": "go1.25.4",
    "compiler": "gc",
    "platform": "linux/amd64",
}


def discover(path: tuple[str, ...], hidden: Collection[str]) -> dict[str, Any] | None:
    """Return the document for a discovery path, None where it is not one that is served."""
    served = [kind for kind in KINDS if kind.resource not in hidden]
    match path:
        case ("version",):
            return dict(VERSION)
        case ("api",):
            return {"kind": "APIVersions", "versions": ["v1"]}
        case ("apis",):
            groups = sorted({kind.group for kind in served} - {""})
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(name, served) for name in groups]}
        case ("apis", group):
            return _group_document(group, served)
        case ("api", version):
            return _resources("", version, served)
        case ("apis", group, version):
            return _resources(group, version, served)
    return None


def _group(name: str, served: list[Kind]) -> dict[str, Any]:
    found = [version for kind in served if kind.group == name for version in kind.versions]
    versions = [{"groupVersion": f"{name}/{version}", "version": version} for version in dict.fromkeys(found)]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _group_document(group: str, served: list[Kind]) -> dict[str, Any] | None:
    if not any(kind.group == group for kind in served):
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(group, served)}


def _resources(group: str, version: str, served: list[Kind]) -> dict[str, Any] | None:
    kinds = [kind for kind in served if kind.group == group and version in kind.versions]
    if not kinds:
        return None
    resources = [
        {
            "name": kind.plural,
            "singularName": kind.kind.lower(),
            "namespaced": kind.namespaced,
            "kind": kind.kind,
            "verbs": ["get", "list", "watch"],
        }
        for kind in kinds
    ]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": kinds[0].api_version(version),
        "resources": resources,
    }
