"""Run as a module with an empty state folder: looks at a cluster, and SIGKILL ends it at one step after another.

Each worker is a fork on a real database file. Then four look at the same moment, once when the cause is new and once
when it is gone. Prints, as JSON, what is in the tables after each death and at the end.
"""

from __future__ import annotations

import json
import os
import signal
from datetime import timedelta
from typing import Any

import django

django.setup()

from django.conf import settings  # noqa: E402 - models need the set-up above
from django.core.management import call_command  # noqa: E402
from django.db import connections  # noqa: E402

from apps.alerts.models import Alert, AlertGang, AlertRule, Route  # noqa: E402
from apps.alerts.services import evaluation, telling  # noqa: E402
from apps.delivery.models import Channel, Delivery  # noqa: E402
from tests.apps.alerts.conftest import Store  # noqa: E402

STEPS = (
    (evaluation, "cluster_observe"), (evaluation, "facts_now"), (evaluation, "_take"), (evaluation, "_apply"),
    (evaluation, "_describe"), (evaluation, "_thread"), (evaluation, "_members_put"), (evaluation, "alerts_tell"),
    (telling, "alert_message"), (telling, "enqueue"), (telling, "_note"),
)  # fmt: skip
WORKERS = 4


def worker(store: Store, module: Any = None, step: str = "") -> int:
    """Look in a process of its own, which dies once it has done a step; return its process id."""
    connections.close_all()
    child = os.fork()
    if child == 0:
        if module is not None:
            real = getattr(module, step)

            def die(*given: Any, **named: Any) -> Any:
                real(*given, **named)
                os.kill(os.getpid(), signal.SIGKILL)

            setattr(module, step, die)
        store.look()
        os._exit(0)
    return child


def ended(child: int) -> int:
    return os.WTERMSIG(os.waitpid(child, 0)[1])


def rows() -> dict[str, Any]:
    return {
        "alerts": [[alert.state, len(alert.told_to)] for alert in Alert.objects.order_by("pk")],
        "gangs": AlertGang.objects.count(),
        "told": list(Delivery.objects.order_by("pk").values_list("kind", flat=True)),
    }


def main() -> None:
    for name in ("queue", "control"):
        (settings.GANGDASH_STATE_DIR / "broker" / name).mkdir(parents=True)
    call_command("migrate", verbosity=0)
    AlertRule.objects.exclude(key="never_fits").update(is_enabled=False)
    AlertRule.objects.update(keep_seconds=0)
    Route.objects.create(name="all", channel=Channel.objects.create(name="ops", kind="webhook", host="x"))
    store = Store()
    gang = store.gang("a")
    store.says(gang, "NODE_TOO_SMALL")
    deaths = {}
    for module, step in STEPS:
        store.minute += 1
        deaths[step] = {"signal": ended(worker(store, module, step)), **rows()}
    together = [[ended(child) for child in [worker(store) for _ in range(WORKERS)]], rows()]
    store.minute += 1
    store.says(gang, "RUNNING")
    gone = [[ended(child) for child in [worker(store) for _ in range(WORKERS)]], rows()]
    store.minute += timedelta(hours=1).total_seconds() / 60
    store.look()
    print(json.dumps({"deaths": deaths, "together": together, "gone": gone, "end": rows()}))


if __name__ == "__main__":
    main()
