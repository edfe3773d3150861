"""Takes names of other people's gangs out of texts for readers who may see single namespaces only.

Sentences and documents are made once, for those who see everything. A name counts as hidden when its namespace has
gangs or pods in that cluster and the reader may not see it; anything else with a slash stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.accounts.scope import Scope
from apps.workloads.models import Gang, Pod

HIDDEN = "something in another namespace"
# An optional kind, a namespace, a name; not in the middle of a longer path or of a dotted name.
_REFERENCE = re.compile(r"(?<![\w./-])(?:[A-Z]\w*/)?([a-z0-9][a-z0-9-]*)/[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Veil:
    """``hidden`` holds the namespaces per cluster that the reader may not see; empty for who sees everything."""

    hidden: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def text(self, text: str, *, cluster: str) -> str:
        """Return the text without references into hidden namespaces."""
        namespaces = self.hidden.get(cluster)
        if not namespaces:
            return text
        return _REFERENCE.sub(lambda found: HIDDEN if found[1] in namespaces else found[0], text)

    def value(self, value: Any, *, cluster: str) -> Any:
        """Return plain JSON data with each text in it without such references."""
        if isinstance(value, dict):
            return {key: self.value(item, cluster=cluster) for key, item in value.items()}
        if isinstance(value, list):
            return [self.value(item, cluster=cluster) for item in value]
        return self.text(value, cluster=cluster) if isinstance(value, str) else value


def veil_for(*, scope: Scope) -> Veil:
    """Return what hides from this reader; two queries for a viewer of single namespaces, none for the others."""
    if scope.sees_all:
        return Veil()
    found: dict[str, set[str]] = {}
    for model in (Gang, Pod):
        rows = model.objects.filter(cluster__name__in=scope.clusters()).order_by()
        for cluster, namespace in rows.values_list("cluster__name", "namespace").distinct():
            if not scope.allows(cluster=cluster, namespace=namespace):
                found.setdefault(cluster, set()).add(namespace)
    return Veil({cluster: frozenset(namespaces) for cluster, namespaces in found.items()})
