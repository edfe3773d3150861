"""`manage.py report --cluster NAME`: prints a health report made now from what is stored; keeps and sends nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from apps.clusters.models import Cluster
from apps.errors import ApplicationError
from apps.reports.choices import ReportForm
from apps.reports.ranges import parse_range
from apps.reports.renderers import render
from apps.reports.scheduling import zone_names
from apps.reports.services import content_of

ERROR = 255


class Command(BaseCommand):
    help = "Print a health report of one cluster: what waited, why, and what it cost. Exit: 0 printed, 255 error."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--cluster", required=True, metavar="NAME")
        parser.add_argument(
            "--range",
            default="24h",
            metavar="RANGE",
            dest="covered",
            help="24h, 7d, or FROM/TO like 2026-11-29T08:00:00Z/2026-11-30T08:00:00Z",
        )
        parser.add_argument("--format", choices=ReportForm.values, default=ReportForm.MARKDOWN.value, dest="form")
        parser.add_argument("--zone", default="UTC", help="the time zone that moments are written in")
        parser.add_argument("--output", type=Path, metavar="FILE", help="write a file instead of standard output")

    def handle(self, *, cluster: str, covered: str, form: str, zone: str, output: Path | None, **_: Any) -> None:
        try:
            text = report_text(cluster=cluster, covered=covered, form=ReportForm(form), zone=zone)
            if output is None:
                self.stdout.write(text, ending="")
            else:
                output.write_text(text, encoding="utf-8", newline="")
        except ApplicationError as error:
            raise CommandError(error.detail, returncode=ERROR) from error
        except DatabaseError as error:
            raise CommandError(f"The database cannot be read: {error}", returncode=ERROR) from error
        except OSError as error:
            raise CommandError(f"{output}: cannot be written: {error.strerror}", returncode=ERROR) from error


def report_text(*, cluster: str, covered: str, form: ReportForm, zone: str) -> str:
    """Return the report; ``ApplicationError`` says in one line what is wrong with the wish."""
    now = datetime.now(UTC)
    if zone not in zone_names():
        raise ApplicationError("zone_unknown", f"{zone!r} is no time zone; write it like Europe/Berlin")
    wanted = parse_range(covered, now=now)
    found = Cluster.objects.filter(name=cluster).first()
    if found is None:
        known = ", ".join(Cluster.objects.values_list("name", flat=True)) or "none"
        raise ApplicationError("cluster_unknown", f"There is no cluster {cluster!r}; known: {known}")
    content = content_of(cluster=found, covered=wanted, zone=zone, now=now)
    return render(content, form, base_url=settings.GANGDASH_BASE_URL)
