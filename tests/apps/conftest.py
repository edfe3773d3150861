"""The cast of the store's tests: Alice sees everything, Bob sees one namespace of one cluster."""

from __future__ import annotations

import pytest

from apps.accounts.choices import Role
from apps.accounts.models import NamespaceGrant, User

BOBS_CLUSTER = "east"
BOBS_NAMESPACE = "team-a"


@pytest.fixture
def alice(db: None) -> User:
    """Return an admin."""
    return User.objects.create_user("alice", password="alice-password", role=Role.ADMIN)


@pytest.fixture
def bob(db: None) -> User:
    """Return a viewer of the namespace team-a in the cluster east."""
    user = User.objects.create_user("bob", password="bob-password", role=Role.NAMESPACES)
    NamespaceGrant.objects.create(user=user, cluster=BOBS_CLUSTER, namespace=BOBS_NAMESPACE)
    return user
