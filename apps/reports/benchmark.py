"""What a report costs: CPU and memory of one over a generated week with millions of changes of reason.

The week is written by one process and reported on by another, each started anew on a database in a folder of its
own, so that peak memory is that of the report alone.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

CLUSTER = "bench"
START = datetime(2026, 11, 16, tzinfo=UTC)
WEEK = timedelta(days=7)
QUEUES = 40
RACKS, NODES_A_RACK, GPUS_A_NODE = 64, 16, 8
POLL, POLLS_KEPT = timedelta(seconds=15), timedelta(days=3)
"""Their records are kept for days only."""
SAMPLE = timedelta(minutes=10)
ROWS_AT_ONCE = 20_000
SEED = 20261130
_SETTINGS = "gangdash.settings.embedded"
_REASONS = (
    ("NO_FIT", "GPUS_BUSY", "waits"),
    ("NO_FIT", "DOMAIN_BUSY", "waits"),
    ("POLICY", "QUEUE_LIMIT", "waits"),
    ("GATED", "SCHEDULING_GATE", "waits"),
    ("EVICTED", "RECLAIMED", "waits"),
    ("HEALTHY", "RUNNING", "fine"),
)


@dataclass(frozen=True, slots=True)
class ReportCost:
    """One report. Peak memory (MiB) is that of its process since its start."""

    rows: int
    gangs: int
    cpu_seconds: float
    seconds: float
    peak: float
    size_bytes: int


def report_cost(*, rows: int, gangs: int) -> ReportCost:
    """Write a week of so many changes of so many gangs, report on it, and return what the report cost."""
    with tempfile.TemporaryDirectory(prefix="gangdash-bench-") as folder:
        _in_process(Path(folder), week_write, rows, gangs)
        cost: ReportCost = _in_process(Path(folder), _reported, rows, gangs)
        return cost


def _in_process(folder: Path, work: Callable[[int, int], Any], rows: int, gangs: int) -> Any:
    """Run something in a process of its own whose database lies in a folder."""
    with multiprocessing.get_context("spawn").Pool(1, initializer=_prepared, initargs=(str(folder),)) as pool:
        return pool.apply(work, (rows, gangs))


def _prepared(folder: str) -> None:
    """Set Django up, on a database that is made where there is none."""
    os.environ |= {"DJANGO_SETTINGS_MODULE": _SETTINGS, "GANGDASH_STATE_DIR": folder, "GANGDASH_CLUSTERS_DIR": ""}
    os.environ |= {"GANGDASH_KUBECONFIG": "", "GANGDASH_PROMETHEUS_URL": "", "GANGDASH_LOG_LEVEL": "WARNING"}
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)


def _reported(rows: int, gangs: int) -> ReportCost:
    from apps.clusters.models import Cluster
    from apps.reports.build import build_content
    from apps.reports.content import content_encode

    cluster = Cluster.objects.get(name=CLUSTER)
    started, cpu = time.perf_counter(), time.process_time()
    content = build_content(cluster, start=START, end=START + WEEK, now=START + WEEK)
    return ReportCost(
        rows=rows,
        gangs=gangs,
        cpu_seconds=time.process_time() - cpu,
        seconds=time.perf_counter() - started,
        peak=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        size_bytes=len(content_encode(content)),
    )


def week_write(rows: int, gangs: int) -> None:
    """Write the week: queues, nodes, readings and samples at an even pace, and the changes spread over all gangs."""
    from django.db import transaction

    from apps.clusters.models import Cluster

    dice = random.Random(SEED)  # noqa: S311 - the same week each time
    with transaction.atomic():
        cluster = Cluster.objects.create(name=CLUSTER, source="demo", read_as_of=START + WEEK)
        Cluster.objects.filter(pk=cluster.pk).update(added_at=START - 2 * WEEK)
        _write_inventory(cluster.pk, dice)
        _write_readings(cluster.pk)
        keys = _write_gangs(cluster.pk, gangs, dice)
        _write_timelines(keys, max(1, rows // gangs), dice)


def _write_inventory(cluster_id: int, dice: random.Random) -> None:
    from apps.inventory.models import CapacitySample, Node, Queue, Topology

    Queue.objects.bulk_create(
        Queue(cluster_id=cluster_id, name=f"queue-{n}", parent="top", gpu_quota=128, gpu_limit=512, fingerprint="-")
        for n in range(QUEUES)
    )
    Topology.objects.create(cluster_id=cluster_id, name="main", levels=[{"label": "rack"}], fingerprint="-")
    Node.objects.bulk_create(
        Node(cluster_id=cluster_id, name=f"node-{n}", state="ready", gpus=GPUS_A_NODE, fingerprint="-")
        for n in range(RACKS * NODES_A_RACK)
    )
    CapacitySample.objects.bulk_create(
        (_sample(cluster_id, number, dice) for number in range(int(WEEK / SAMPLE))), batch_size=100
    )


def _sample(cluster_id: int, number: int, dice: random.Random) -> Any:
    from apps.inventory.models import CapacitySample

    gpus = NODES_A_RACK * GPUS_A_NODE
    racks = {f"main|rack-{n}": [gpus, dice.randrange(gpus), 0, NODES_A_RACK, 0] for n in range(RACKS)}
    total = [sum(entry[at] for entry in racks.values()) for at in range(5)]
    queues = {f"queue-{n}": [dice.randrange(256), 128] for n in range(QUEUES)}
    return CapacitySample(
        cluster_id=cluster_id, at=START + number * SAMPLE, queues=queues, domains={"": total, **racks}
    )


def _write_readings(cluster_id: int) -> None:
    from apps.clusters.models import PollRun

    moments = (START + WEEK - number * POLL for number in range(1, int(POLLS_KEPT / POLL)))
    kinds = [{"kind": f"kind-{n}", "count": 10, "bytes": 1, "requests": 1, "ms": 1, "reason": ""} for n in range(20)]
    PollRun.objects.bulk_create(
        (PollRun(cluster_id=cluster_id, started_at=at, ended_at=at, outcome="read", kinds=kinds) for at in moments),
        batch_size=500,
    )


def _write_gangs(cluster_id: int, gangs: int, dice: random.Random) -> list[int]:
    from apps.workloads.models import Attempt, Gang

    rows = [
        Gang(
            cluster_id=cluster_id, uid=f"uid-{n}", namespace=f"team-{n % 50}", name=f"gang-{n}",
            queue=f"queue-{n % QUEUES}", gpus=dice.choice((1, 4, 8, 16, 64)), created_at=START, first_seen_at=START,
            last_seen_at=START + WEEK, waiting_since=START,
        )
        for n in range(gangs)
    ]  # fmt: skip
    Gang.objects.bulk_create(rows, batch_size=500)
    keys = list(Gang.objects.order_by("pk").values_list("pk", flat=True))
    Attempt.objects.bulk_create(
        (
            Attempt(cluster_id=cluster_id, gang_id=pk, lineage=f"lineage-{pk % 500}", created_at=START, seen_at=START,
                    bound_at=START + timedelta(minutes=pk % 30))
            for pk in keys
        ),
        batch_size=500,
    )  # fmt: skip
    return keys


def _write_timelines(keys: list[int], each: int, dice: random.Random) -> None:
    """Write the rows by the table itself: as objects, two millions of them would take minutes."""
    from django.db import connection

    from apps.diagnosis.models import ReasonTimeline

    table = connection.ops.quote_name(ReasonTimeline._meta.db_table)  # noqa: SLF001 - Django documents it
    columns = "gang_id, verdict, code, who, state, sentence, subject, gpus, opened_at, closed_at"
    insert = f"INSERT INTO {table} ({columns}) VALUES ({', '.join(['%s'] * 10)})"  # noqa: S608
    rows: list[tuple[Any, ...]] = []
    with connection.cursor() as cursor:
        for row in _timelines(keys, each, dice):
            rows.append(row)
            if len(rows) == ROWS_AT_ONCE:
                cursor.executemany(insert, rows)
                rows.clear()
        cursor.executemany(insert, rows)


def _timelines(keys: list[int], each: int, dice: random.Random) -> Iterator[tuple[Any, ...]]:
    width = WEEK / each
    for pk in keys:
        opened, before = START, -1
        for number in range(each):
            pick = dice.choice([n for n in range(len(_REASONS)) if n != before])
            verdict, code, state = _REASONS[pick]
            closed = None if number == each - 1 else opened + width
            yield pk, verdict, code, "wait", state, "Waits.", "", 8.0, str(opened), closed and str(closed)
            opened, before = opened + width, pick
