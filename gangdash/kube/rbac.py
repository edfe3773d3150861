"""The read-only ClusterRole that a poll needs, made from the table of kinds.

Verbs are get and list, never a secret. ConfigMaps stand apart: access rules cannot tell names from
contents, so listing them is offered as a choice.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import msgspec

from gangdash.kube import kinds

VERBS = ("get", "list")


def cluster_role(name: str = "gangdash-reader", *, config_maps: bool = True) -> dict[str, Any]:
    """Return the role as an object; without ``config_maps`` a pod's missing ConfigMap cannot be told."""
    plurals: dict[str, list[str]] = defaultdict(list)
    for kind in kinds.live():
        if config_maps or kind.name != "ConfigMap":
            plurals[kind.group].append(kind.plural)
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": [
            {"apiGroups": [group], "resources": sorted(plurals[group]), "verbs": list(VERBS)}
            for group in sorted(plurals)
        ],
    }


def cluster_role_yaml(name: str = "gangdash-reader", *, config_maps: bool = True) -> str:
    """Return the role as it can be piped into ``kubectl apply -f -``."""
    return msgspec.yaml.encode(cluster_role(name, config_maps=config_maps)).decode()
