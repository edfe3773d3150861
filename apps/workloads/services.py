"""Changes to service objectives. Each leaves a row in the audit record."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from django.core.exceptions import ValidationError
from django.db import transaction

from apps.accounts.models import User
from apps.accounts.services import audit_record
from apps.clusters.models import Cluster
from apps.errors import ApplicationError
from apps.workloads.models import ServiceObjective


@dataclass(frozen=True, slots=True)
class ObjectiveTerms:
    """What is promised; the names are those of the row."""

    share: float = 0.95
    gpus_max: float = 64
    within_seconds: int = 600
    window_days: int = 28


@transaction.atomic
def objective_set(
    *, cluster: Cluster, queue: str = "", terms: ObjectiveTerms, actor: User | None = None, address: str | None = None
) -> ServiceObjective:
    """Promise something for a queue, or for the whole cluster; what was promised for it before ends here."""
    row = ServiceObjective.objects.select_for_update().filter(cluster=cluster, queue=queue).first()
    row = row or ServiceObjective(cluster=cluster, queue=queue)
    for name, value in asdict(terms).items():
        setattr(row, name, value)
    try:
        row.full_clean(validate_unique=False, validate_constraints=False)
    except ValidationError as error:
        words = "; ".join(f"{name}: {' '.join(texts)}" for name, texts in error.message_dict.items())
        raise ApplicationError("objective_not_valid", f"The objective is not valid: {words}") from error
    row.save()
    audit_record(action="objective.set", actor=actor, target=str(row), details=asdict(terms), address=address)
    return row


@transaction.atomic
def objective_remove(
    *, cluster: Cluster, queue: str = "", actor: User | None = None, address: str | None = None
) -> None:
    """Take a promise back."""
    row = ServiceObjective.objects.filter(cluster=cluster, queue=queue).first()
    if row is None:
        raise ApplicationError("objective_unknown", f"Nothing is set for {queue or 'the whole cluster'}")
    audit_record(action="objective.remove", actor=actor, target=str(row), address=address)
    row.delete()
