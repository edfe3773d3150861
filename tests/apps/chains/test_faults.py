"""No conclusion about a workload is drawn from a kind that could not be read, whichever it is."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from apps.chains.models import ChainLink, TopMoment, TopObject
from apps.chains.services import chains_record
from apps.clusters.models import Cluster
from tests.chain import world as w

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
KINDS = (
    "DynamoGraphDeployment", "PodCliqueSet", "PodClique", "PodCliqueScalingGroup", "PodGang", "PodGangMap", "PodGroup",
    "Pod", "Deployment", "Event",
)  # fmt: skip


def record(cluster: Cluster, *objects: w.Object, minute: int, not_read: dict[str, str] | None = None) -> None:
    snapshot = w.snapshot(*objects, not_read=not_read)
    chains_record(cluster=cluster, snapshot=snapshot, as_of=NOW.replace(minute=minute))


@pytest.mark.parametrize("reason", ["403", "timed out", "not served"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_that_is_missing_makes_nothing_stand_or_overdue(kind: str, reason: str) -> None:
    cluster = Cluster.objects.create(name="east", source="folder")
    objects = w.served()
    record(cluster, *objects, minute=0)
    rest = [item for item in objects if item["kind"] != kind]
    record(cluster, *rest, minute=1, not_read={kind: reason})
    tops = {top.kind: top for top in TopObject.objects.all()}
    # Without its graph a set stands for itself.
    assert tops.keys() <= {"DynamoGraphDeployment", "PodCliqueSet"}
    assert tops
    if reason == "not served" and kind == "PodCliqueSet":
        assert tops["DynamoGraphDeployment"].stage == "S3", "without Grove, components are made; here none was"
    else:
        assert all(not top.stage and not top.is_overdue for top in tops.values())
    if reason != "not served":
        assert "DynamoGraphDeployment" in tops
    record(cluster, *objects, minute=2)
    assert TopObject.objects.get().stage == ""
    assert ChainLink.objects.filter(kind="PodClique").count() == 1
    assert TopMoment.objects.filter(until=None).count() == 1
