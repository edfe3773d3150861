"""What one person may see, as a value that selectors turn into a filter.

Made once per request from the user's role and grants; knows nothing about requests or models of other apps.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser
from django.db.models import Q

from apps.accounts.choices import Role
from apps.accounts.models import User


@dataclass(frozen=True, slots=True)
class Scope:
    """``sees_all`` overrides ``namespaces``, which holds (cluster, namespace) pairs."""

    sees_all: bool = False
    namespaces: frozenset[tuple[str, str]] = frozenset()

    def allows(self, *, cluster: str, namespace: str) -> bool:
        return self.sees_all or (cluster, namespace) in self.namespaces

    def clusters(self) -> frozenset[str]:
        """Return the names of clusters with at least one visible namespace; meaningless when all is seen."""
        return frozenset(cluster for cluster, _namespace in self.namespaces)

    def namespace_filter(self, *, cluster_field: str = "cluster__name", namespace_field: str = "namespace") -> Q:
        """Return the condition on rows that carry a namespace; matches nothing where nothing is granted."""
        if self.sees_all:
            return Q()
        condition = Q(pk__in=[])
        for cluster in sorted(self.clusters()):
            names = sorted(namespace for owner, namespace in self.namespaces if owner == cluster)
            condition |= Q(**{cluster_field: cluster, f"{namespace_field}__in": names})
        return condition

    def cluster_filter(self, *, cluster_field: str = "name") -> Q:
        """Return the condition on rows of a cluster that carry no namespace, like the cluster itself."""
        return Q() if self.sees_all else Q(**{f"{cluster_field}__in": sorted(self.clusters())})


EVERYTHING = Scope(sees_all=True)
NOTHING = Scope()


def scope_of(user: User | AnonymousUser) -> Scope:
    """Return what this user may see: one query for a viewer of named namespaces, none for the others."""
    if not isinstance(user, User) or not user.is_active:
        return NOTHING
    if user.is_admin or user.role == Role.VIEWER:
        return EVERYTHING
    pairs: Iterable[tuple[str, str]] = user.grants.values_list("cluster", "namespace")
    return Scope(namespaces=frozenset(pairs))
