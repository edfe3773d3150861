"""Two clusters, an admin, a channel, and a maker of contents that needs no stored week."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from apps.accounts.choices import Role
from apps.accounts.models import User
from apps.clusters.models import Cluster
from apps.delivery.choices import ChannelKind
from apps.delivery.models import Channel
from apps.reports.content import Content
from tests.apps.reports import samples


class Maker:
    """Stands in for the sections: notes what it was asked for and can be told to break."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.error: Exception | None = None

    def __call__(
        self,
        cluster: Cluster,
        *,
        start: datetime,
        end: datetime,
        now: datetime,
        previous: Content | None = None,
        zone: str = "UTC",
    ) -> Content:
        self.asked.append({"cluster": cluster.name, "start": start, "end": end, "previous": previous})
        if self.error is not None:
            raise self.error
        made = samples.content(cluster=cluster.name, start=start, end=end, made_at=now, zone=zone)
        return replace(made, engine=f"made {len(self.asked)}")


@pytest.fixture
def maker(monkeypatch: pytest.MonkeyPatch) -> Maker:
    made = Maker()
    monkeypatch.setattr("apps.reports.services.build_content", made)
    return made


@pytest.fixture
def cluster(db: None) -> Cluster:
    return Cluster.objects.create(name="fjord-1", source="folder")


@pytest.fixture
def admin(db: None) -> User:
    return User.objects.create_user("root", role=Role.ADMIN)


@pytest.fixture
def channel(db: None) -> Channel:
    return Channel.objects.create(name="gpu-admins", kind=ChannelKind.EMAIL, recipients=["gpu@example.org"])
