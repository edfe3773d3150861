"""What a poll costs: CPU, memory, requests and bytes of reading a large generated cluster over HTTP.

The cluster is served by this process, the polls run in another one on a database of its own, so that neither pays
for the other. Analysis is not part of it: it has its own queue and its own measurement.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.pool import Pool
from pathlib import Path

from gangdash.simulator.bulk import Size, bulk_objects, changed_gangs
from gangdash.simulator.server import FakeApiServer

CHANGED_SHARE = 10
"""One gang in so many changes before the last poll."""
PASSES = ("first", "unchanged", "unchanged", "a tenth changed")
_SETTINGS = "gangdash.settings.embedded"


@dataclass(frozen=True, slots=True)
class PollCost:
    """One poll. Peak memory (MiB) is that of the process since its start."""

    what: str
    outcome: str
    cpu_seconds: float
    seconds: float
    peak: float
    requests: int
    received_bytes: int
    rows_written: int


def poll_costs(size: Size) -> Iterator[PollCost]:
    """Poll a cluster of this size in the order of ``PASSES`` and yield what each poll cost."""
    with (
        tempfile.TemporaryDirectory(prefix="gangdash-bench-") as folder,
        _reader(Path(folder)) as reader,
        FakeApiServer(bulk_objects(size)) as server,
    ):
        server.kubeconfig(Path(folder) / "bench.yaml")
        for number, what in enumerate(PASSES):
            if number == len(PASSES) - 1:
                server.store.write(changed_gangs(size, share=CHANGED_SHARE))
            yield reader.apply(_polled, (what,))


@contextmanager
def _reader(folder: Path) -> Iterator[Pool]:
    """Start the process that polls, before this one grows: a child begins with its parent's peak memory."""
    environment = {
        "DJANGO_SETTINGS_MODULE": _SETTINGS,
        "GANGDASH_STATE_DIR": str(folder),
        "GANGDASH_KUBECONFIG": str(folder / "bench.yaml"),
        "GANGDASH_CLUSTERS_DIR": "",
        "GANGDASH_LOG_LEVEL": "WARNING",
    }
    before = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    try:
        pool = multiprocessing.get_context("spawn").Pool(1, initializer=_prepared)
    finally:
        _restore(before)
    with pool:
        yield pool


def _restore(before: dict[str, str | None]) -> None:
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _prepared() -> None:
    """Set Django up in the polling process, on an empty database."""
    import django

    django.setup()
    from django.conf import settings
    from django.core.management import call_command

    # Requests for analysis are put there; nobody takes them.
    for name in ("queue", "control"):
        (settings.GANGDASH_STATE_DIR / "broker" / name).mkdir(parents=True)
    call_command("migrate", verbosity=0)


def _polled(what: str) -> PollCost:
    from datetime import UTC, datetime

    from apps.clusters.services import clusters_sync
    from apps.clusters.sources import configured_sources
    from apps.collector.services import cluster_poll

    found = configured_sources()
    [cluster] = clusters_sync(found=found, now=datetime.now(UTC))
    started, cpu = time.perf_counter(), time.process_time()
    run = cluster_poll(cluster=cluster, source=found.sources[0])
    return PollCost(
        what=what,
        outcome=run.detail or str(run.outcome),
        cpu_seconds=time.process_time() - cpu,
        seconds=time.perf_counter() - started,
        peak=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        requests=run.requests,
        received_bytes=run.received_bytes,
        rows_written=run.rows_written,
    )
