"""`manage.py bench_report`: what a report over a generated week costs, in a process and on a database of its own."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.reports.benchmark import report_cost


class Command(BaseCommand):
    help = "Measure CPU and memory of a report over a generated week."
    requires_system_checks: tuple[str, ...] = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--rows", type=int, default=2_000_000, help="changes of reason in the week")
        parser.add_argument("--gangs", type=int, default=4_000, help="gangs that share them")

    def handle(self, *, rows: int, gangs: int, **_: Any) -> None:
        if not 1 <= gangs <= rows:
            raise CommandError("--gangs begins at 1, and each gang has at least one change")
        cost = report_cost(rows=rows, gangs=gangs)
        names = ("rows", "gangs", "CPU s", "s", "peak MiB", "KB")
        cells = (
            f"{cost.rows:,}", f"{cost.gangs:,}", f"{cost.cpu_seconds:.1f}", f"{cost.seconds:.1f}", f"{cost.peak:.0f}",
            f"{cost.size_bytes / 1000:.0f}",
        )  # fmt: skip
        self.stdout.write("".join(f"{name:>12}" for name in names))
        self.stdout.write("".join(f"{cell:>12}" for cell in cells))
