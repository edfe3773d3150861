"""A report over readings that were really stored and really diagnosed, now and of moments that have passed."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine

from apps.clusters.models import Cluster
from apps.diagnosis import tasks
from apps.inventory.models import CapacitySample
from apps.reports.build import build_content
from apps.reports.content import Content
from tests.apps import raw
from tests.apps.diagnosis.conftest import NOW, Store, east, store
from tests.apps.reports.sections.build import section

__all__ = ["east", "store"]

TOO_BIG, FITS = raw.gang("g", pods=3, gpus=8), raw.gang("g", pods=1, gpus=8)
STEPS: list[tuple[int, list[Any]]] = [
    (0, TOO_BIG),
    (30, [*TOO_BIG, raw.node("n3", gpus=0)]),
    (60, FITS),
    (90, raw.gang("h", pods=3, gpus=8)),
]


def minute(count: int) -> datetime:
    return NOW + timedelta(minutes=count)


@pytest.fixture(autouse=True)
def past(east: Cluster, store: Store) -> None:
    """Let gang g wait for 24 GPUs from minute 0 and for 8 from minute 60, and h for 24 from minute 90."""
    with time_machine.travel(NOW, tick=False) as clock:
        for minutes, objects in STEPS:
            clock.move_to(minute(minutes))
            store(raw.cluster(objects), minute(minutes))
            tasks.diagnose_due()
    Cluster.objects.filter(pk=east.pk).update(added_at=minute(0))


def report(first: int, last: int) -> Content:
    return build_content(Cluster.objects.get(name="east"), start=minute(first), end=minute(last), now=minute(120))


def waited(content: Content) -> dict[str, float | None]:
    table = next(table for table in section(content, "why").tables if table.key == "codes")
    return {row[1].text: row[3].value for row in table.rows}


def test_gpu_hours_follow_the_diagnoses(east: Cluster) -> None:
    content = report(0, 120)
    assert content.as_of == minute(90)
    found = waited(content)
    # 24 GPUs for an hour, then 8 for half an hour that fit; then 24 for half an hour.
    assert found["No fit"] == pytest.approx(24 * 1 + 24 * 0.5)
    assert found["Will start"] == pytest.approx(8 * 0.5)
    [row] = section(content, "waiting").tables[0].rows
    assert row[0].text == "team-a/h"
    assert row[1].value == 24
    assert row[5].text == "2 of 3 pods (pods that fit, empty)"
    assert section(content, "waiting").notes == ()


def test_a_past_moment_says_what_was_said_then(east: Cluster) -> None:
    content = report(0, 45)
    assert content.as_of == minute(30)
    assert waited(content) == {"No fit": pytest.approx(24 * 0.75)}
    [row] = section(content, "waiting").tables[0].rows
    assert row[0].text == "team-a/g"
    # It was made an hour before it was first read, and has waited since then.
    assert row[2].value == 105 * 60
    assert row[5].text == "2 of 3 pods (pods that fit, empty)"
    assert "gang waits for 24\u00a0GPUs, the oldest for 105\u00a0min: " in content.headline[0]
    later = report(45, 75)
    assert waited(later) == {"No fit": pytest.approx(24 * 0.25), "Will start": pytest.approx(8 * 0.25)}
    assert later.headline[0].startswith("1\u00a0gang waits for 8\u00a0GPUs")


def test_what_fits_counts_the_whole_free_nodes_of_a_real_sample(east: Cluster) -> None:
    total = CapacitySample.objects.order_by("-at")[0].domains[""]
    rows = section(report(0, 120), "fit").tables[0].rows
    assert rows[0][2].value == total[4]
    assert rows[0][4].value == (total[0] - total[2]) // 8


def test_the_same_rows_give_the_same_report(east: Cluster) -> None:
    assert report(0, 120) == report(0, 120)
