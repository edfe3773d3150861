"""Run as a module with an empty state folder: makes reports by schedule, and SIGKILL ends the maker at each step.

Each maker is a fork on a real database file, so what it had not committed is gone as it is when a machine dies.
Prints, as JSON, what was left after each death and after the next ticks, and what four makers at once left.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from datetime import time as clock
from typing import Any

import django

django.setup()

from celery import current_app  # noqa: E402 - models need the set-up above
from django.core.management import call_command  # noqa: E402
from django.db import connections  # noqa: E402

from apps.accounts.models import User  # noqa: E402
from apps.clusters.models import Cluster  # noqa: E402
from apps.delivery.choices import ChannelKind  # noqa: E402
from apps.delivery.models import Channel, Delivery  # noqa: E402
from apps.reports import services  # noqa: E402
from apps.reports.content import Content, content_encode  # noqa: E402
from apps.reports.models import Report, ReportSchedule  # noqa: E402
from apps.reports.scheduling import ScheduleValues, schedule_save  # noqa: E402
from tests.apps.reports import samples  # noqa: E402

NOW = datetime(2026, 11, 30, 7, 0, tzinfo=UTC)
DUE = NOW + timedelta(hours=1)
LATER = DUE + services.HOLD + timedelta(minutes=1)
CLUSTERS = ("east", "west", "north")
ASK, BUILD = "send_task", "build_content"


def die(*_arguments: Any, **_named: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def after(name: str) -> Callable[..., None]:
    """Return a function that does what a function of the services does, and dies."""
    real = getattr(services, name)

    def deadly(*arguments: Any, **named: Any) -> None:
        real(*arguments, **named)
        die()

    return deadly


def build(cluster: Cluster, *, start: datetime, end: datetime, now: datetime, **_: Any) -> Content:
    """Make a report that takes a moment, so that two makers would meet."""
    time.sleep(0.05)
    return samples.content(cluster=cluster.name, start=start, end=end, made_at=now)


def work(now: datetime) -> None:
    """Do what the tick and the tasks that it asks for do."""
    services.reports_due(now=now)
    for report_id in services.reports_waiting(now=now):
        report = services.report_claim(report_id=report_id, now=now)
        if report is not None:
            services.report_run(report=report, now=now)


def in_a_child(step: Callable[[], object]) -> int:
    """Do something in a process of its own and return its process id."""
    connections.close_all()
    child = os.fork()
    if child == 0:
        step()
        os._exit(0)
    return child


def ended_by(child: int) -> int:
    return os.WTERMSIG(os.waitpid(child, 0)[1])


STEPS: dict[str, tuple[str, Callable[[], Callable[..., Any]]]] = {
    "before it is taken on": ("_reports_take", lambda: die),
    "taken on, not committed": ("_reports_take", lambda: after("_reports_take")),
    "committed, nobody asked": ("reports_waiting", lambda: die),
    "before it is claimed": ("report_claim", lambda: die),
    "claimed": ("build_content", lambda: die),
    "made, not kept": ("content_encode", lambda: die),
    "kept, nobody told": ("_channels_tell", lambda: die),
    "told, not committed": ("_channels_tell", lambda: after("_channels_tell")),
    "committed": ("report_run", lambda: after("report_run")),
}


def left() -> dict[str, object]:
    states = sorted(Report.objects.values_list("state", flat=True))
    whole = all(bool(report.content) == (report.state == "done") for report in Report.objects.all())
    return {"states": states, "whole": whole, "told": Delivery.objects.count()}


def deaths() -> dict[str, object]:
    found: dict[str, object] = {}
    for step, (name, deadly) in STEPS.items():

        def perish(name: str = name, deadly: Callable[[], Callable[..., Any]] = deadly) -> None:
            setattr(services, name, deadly())
            work(DUE)

        ended = ended_by(in_a_child(perish))
        at_death = left()
        work(LATER)
        work(LATER + timedelta(minutes=1))
        found[step] = {"signal": ended, "at death": at_death, "in the end": left()}
        forget()
    return found


def forget() -> None:
    Report.objects.all().delete()
    Delivery.objects.all().delete()
    ReportSchedule.objects.update(due_after=NOW)


def makers_at_once() -> dict[str, object]:
    def thrice() -> None:
        for _ in range(3):
            work(DUE)

    children = [in_a_child(thrice) for _ in range(4)]
    signals = [ended_by(child) for child in children]
    attempts = list(Report.objects.values_list("attempts", flat=True))
    return {"signals": signals, "attempts": attempts, **left()}


def main() -> None:
    call_command("migrate", verbosity=0)
    setattr(current_app, ASK, lambda *_arguments, **_named: None)
    setattr(services, BUILD, build)
    admin = User.objects.create_user("admin")
    for name in CLUSTERS:
        Cluster.objects.create(name=name, source="folder")
    channel = Channel.objects.create(name="mail", kind=ChannelKind.EMAIL, recipients=["gpu@example.org"])
    values = ScheduleValues(name="Daily", at=clock(8), channels=(channel,))
    schedule_save(values=values, actor=admin, now=NOW)
    assert content_encode(samples.content())
    print(json.dumps({"deaths": deaths(), "at once": makers_at_once()}))


if __name__ == "__main__":
    main()
