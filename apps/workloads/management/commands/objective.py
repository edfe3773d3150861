"""`manage.py objective`: how fast gangs are to start, in a cluster or one of its queues: show, set, take back."""

from __future__ import annotations

import re
from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from apps.clusters.models import Cluster
from apps.errors import ApplicationError
from apps.workloads.models import ServiceObjective
from apps.workloads.objectives import objective_list, objective_standing
from apps.workloads.services import ObjectiveTerms, objective_remove, objective_set
from gangdash.reasons.wording import duration, number

_SECONDS = {"s": 1, "m": 60, "h": 3600}


def span(text: str) -> int:
    """Read ``90s``, ``10m`` or ``2h`` as seconds."""
    found = re.fullmatch(r"(\d{1,6})([smh])", text)
    if found is None:
        raise ArgumentTypeError(f"{text!r} is no span like 90s, 10m or 2h")
    return int(found[1]) * _SECONDS[found[2]]


class Command(BaseCommand):
    help = (
        "Show the service objectives of a cluster and how they stand; with --share, --max-gpus, --within or --days "
        "set the one of the cluster, or of --queue and the queues below it."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--cluster", required=True, metavar="NAME")
        parser.add_argument("--queue", default="", metavar="NAME", help="a queue; without it the whole cluster")
        parser.add_argument("--share", type=float, dest="share", help="part of the gangs, like 0.95")
        parser.add_argument("--max-gpus", type=float, dest="gpus_max", help="gangs above this size do not count")
        parser.add_argument("--within", type=span, dest="within_seconds", metavar="SPAN", help="like 90s, 10m or 2h")
        parser.add_argument("--days", type=int, dest="window_days", help="over how many days")
        parser.add_argument("--remove", action="store_true", help="take the objective back")

    def handle(self, *, cluster: str, queue: str, remove: bool, **options: Any) -> None:
        row = Cluster.objects.filter(name=cluster).first()
        if row is None:
            raise CommandError(f"no cluster {cluster!r} is known")
        given = {name: options[name] for name in ObjectiveTerms.__slots__ if options[name] is not None}
        try:
            if remove:
                objective_remove(cluster=row, queue=queue)
            elif given:
                objective_set(cluster=row, queue=queue, terms=ObjectiveTerms(**given))
        except ApplicationError as error:
            raise CommandError(error.detail) from error
        for objective in objective_list(cluster_id=row.pk):
            self.stdout.write(_line(objective))


def _line(objective: ServiceObjective) -> str:
    standing = objective_standing(objective=objective, now=timezone.now())
    left = "no start counted yet" if standing.budget_left is None else f"budget left {standing.budget_left:.0%}"
    return (
        f"{objective.queue or 'all queues'}: {objective.share:.2%} of gangs up to {number(objective.gpus_max)} GPUs "
        f"within {duration(objective.within_seconds)} over {objective.window_days} days"
        f"{'' if objective.pk else ' (default)'}: {standing.met} of {standing.total} met, {left}"
    )
