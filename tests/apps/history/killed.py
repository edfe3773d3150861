"""Run as a module with an empty state folder: polls a cluster, and SIGKILL ends the worker at one step after another.

Each worker is a fork on a real database file, so what it had not committed is gone as it is when a machine dies.
Prints, as JSON, the counts of all rows after each death and after the poll that follows them.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterable
from functools import partial
from types import SimpleNamespace
from typing import Any

import django

django.setup()

from django.apps import apps  # noqa: E402 - models need the set-up above
from django.conf import settings  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connections  # noqa: E402
from django.db.models import QuerySet  # noqa: E402
from django.utils import timezone  # noqa: E402

from apps.clusters.models import Cluster, PollRun  # noqa: E402
from apps.clusters.services import clusters_sync  # noqa: E402
from apps.clusters.sources import configured_sources  # noqa: E402
from apps.collector import services, tasks  # noqa: E402

STEPS = (
    "poll_run_start", "cluster_read", "packed", "found_of", "reading_store", "rows_sync", "history_sync",
    "capacity_sample", "poll_run_finish", "diagnosis_ask", "reading_done",
)  # fmt: skip
SIGNAL = "reading_done"


def die(*_arguments: Any, **_named: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def worker(step: str) -> int:
    """Poll in a process of its own that dies on reaching a step; return the signal that ended it."""
    connections.close_all()
    child = os.fork()
    if child == 0:
        setattr(services, step, SimpleNamespace(send_robust=die) if step == SIGNAL else die)
        tasks.poll_cluster(Cluster.objects.get().pk)
        os._exit(0)
    return os.WTERMSIG(os.waitpid(child, 0)[1])


def counts(*, without: Iterable[str] = ("Cluster", "PollRun", "ClusterCheck")) -> dict[str, int]:
    """Return the rows of each model that has some, without the record of polls and what each poll makes anew."""
    ours = (model for model in apps.get_models() if model.__module__.startswith("apps."))
    found = {model.__name__: QuerySet(model).count() for model in ours}
    return {name: count for name, count in found.items() if count and name not in without}


def main() -> None:
    for name in ("queue", "control"):
        (settings.GANGDASH_STATE_DIR / "broker" / name).mkdir(parents=True)
    call_command("migrate", verbosity=0)
    # Rows that come with the tables are of no poll.
    ours = partial(counts, without=("Cluster", "PollRun", "ClusterCheck", *counts()))
    clusters_sync(found=configured_sources(), now=timezone.now())
    deaths = {}
    for step in STEPS:
        ended_by = worker(step)
        deaths[step] = {"signal": ended_by, "rows": ours(), "locked": Cluster.objects.get().locked_until is not None}
        Cluster.objects.update(locked_until=None)
    tasks.poll_cluster(Cluster.objects.get().pk)
    outcomes = list(PollRun.objects.order_by("pk").values_list("outcome", flat=True))
    print(json.dumps({"deaths": deaths, "rows": ours(), "outcomes": outcomes}))


if __name__ == "__main__":
    main()
