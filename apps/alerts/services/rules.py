"""Rules as they are stored: those of the list are there from the first migration on, people add their own.

Every change of a setting is written down with who made it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.text import slugify

from apps.accounts.models import User
from apps.accounts.services import audit_record
from apps.alerts.models import AlertRule
from apps.alerts.rules import RULES
from apps.alerts.rules.base import Rule
from apps.alerts.rules.custom import condition_of
from apps.alerts.rules.facts import Scope
from apps.alerts.settings import RuleSetting
from apps.delivery.messages import Severity
from apps.errors import ApplicationError
from gangdash.engine.verdict import ReasonCode, Verdict, Who

FOR_MOST = 7 * 86_400
KEEP_MOST = 86_400
NAMES_MOST = 200
CUSTOM_MOST = 100


@dataclass(frozen=True, slots=True)
class RuleInput:
    """What may be set of a rule. ``condition`` and the title are a custom rule's only."""

    severity: str
    for_seconds: int
    keep_seconds: int
    is_enabled: bool = True
    values: Mapping[str, float] = field(default_factory=dict)
    clusters: Sequence[str] = ()
    namespaces: Sequence[str] = ()
    queues: Sequence[str] = ()
    title: str = ""
    condition: Mapping[str, Any] | None = None


def rules_ensure() -> int:
    """Add the rules of the list that are not stored yet and bring words up to date; return how many were added."""
    stored = {row.key: row for row in AlertRule.objects.filter(condition__isnull=True)}
    for key, rule in RULES.items():
        row = stored.get(key)
        if row and (row.title, row.meaning, row.number) != (rule.title, rule.meaning, rule.number):
            AlertRule.objects.filter(pk=row.pk).update(title=rule.title, meaning=rule.meaning, number=rule.number)
    new = [_row_of(rule) for key, rule in RULES.items() if key not in stored]
    AlertRule.objects.bulk_create(new, ignore_conflicts=True)
    return len(new)


def _row_of(rule: Rule) -> AlertRule:
    return AlertRule(
        key=rule.key,
        number=rule.number,
        title=rule.title,
        meaning=rule.meaning,
        severity=rule.severity,
        for_seconds=rule.for_seconds,
        keep_seconds=rule.keep_seconds,
    )


def rule_create(*, values: RuleInput, actor: User, address: str | None = None) -> AlertRule:
    """Make a custom rule."""
    row = custom_row(values=values)
    if AlertRule.objects.filter(condition__isnull=False).count() >= CUSTOM_MOST:
        raise ApplicationError("too_many_rules", f"There are {CUSTOM_MOST} custom rules already")
    with transaction.atomic():
        row.key = _free_key(row.title)
        row.changed_at, row.changed_by = timezone.now(), actor
        row.save()
        audit_record(action="alert_rule.create", actor=actor, target=row.key, details=_told(row), address=address)
    return row


def custom_row(*, values: RuleInput) -> AlertRule:
    """Return a custom rule that is checked and not stored, for a look back before it is."""
    if values.condition is None:
        raise ApplicationError("rule_not_valid", "A custom rule needs a condition", field="condition")
    row = AlertRule(condition={})
    _apply(row, values)
    return row


def rule_row(*, rule: AlertRule, values: RuleInput) -> AlertRule:
    """Return a rule as it would be set, checked and not stored."""
    row = AlertRule.objects.get(pk=rule.pk)
    _apply(row, values)
    return row


def _free_key(title: str) -> str:
    base = f"custom-{slugify(title)[:40] or 'rule'}"
    taken = set(AlertRule.objects.filter(key__startswith=base).values_list("key", flat=True))
    numbered = (f"{base}-{number}" for number in range(2, CUSTOM_MOST + 3))
    return base if base not in taken else next(key for key in numbered if key not in taken)


def rule_update(*, rule: AlertRule, values: RuleInput, actor: User, address: str | None = None) -> AlertRule:
    """Set a rule; what was before is in the audit record."""
    with transaction.atomic():
        row = AlertRule.objects.select_for_update().get(pk=rule.pk)
        before = _told(row)
        _apply(row, values)
        changed: dict[str, object] = {
            name: [old, new] for name, new in _told(row).items() if (old := before[name]) != new
        }
        if changed:
            row.changed_at, row.changed_by = timezone.now(), actor
            row.save()
            audit_record(action="alert_rule.change", actor=actor, target=row.key, details=changed, address=address)
    return row


def rule_delete(*, rule: AlertRule, actor: User, address: str | None = None) -> None:
    """Delete a custom rule with its alerts; those of the list can only be switched off."""
    if not rule.is_custom:
        raise ApplicationError("rule_built_in", "A rule of the list can be switched off, not deleted")
    with transaction.atomic():
        audit_record(action="alert_rule.delete", actor=actor, target=rule.key, details=_told(rule), address=address)
        rule.delete()


def _apply(row: AlertRule, values: RuleInput) -> None:
    row.severity = str(_one_of(values.severity, set(Severity), "severity"))
    row.for_seconds = int(_bounded(values.for_seconds, 0, FOR_MOST, "for_seconds"))
    row.keep_seconds = int(_bounded(values.keep_seconds, 0, KEEP_MOST, "keep_seconds"))
    row.is_enabled = values.is_enabled
    for name in ("clusters", "namespaces", "queues"):
        setattr(row, name, names_checked(getattr(values, name), name))
    if row.is_custom:
        row.title = _title(values.title or row.title)
        if values.condition is not None:
            row.condition = _condition(values.condition)
    else:
        row.values = _values(RULES[row.key], values.values)


def _values(rule: Rule, values: Mapping[str, float]) -> dict[str, float]:
    """Return the numbers that differ from the list's own."""
    params = {param.name: param for param in rule.params}
    unknown = sorted(set(values) - set(params))
    if unknown:
        raise ApplicationError("rule_not_valid", f"This rule has no {unknown[0]!r}", field="values")
    checked = {name: _bounded(value, params[name].least, params[name].most, name) for name, value in values.items()}
    return {name: value for name, value in checked.items() if value != params[name].default}


def _condition(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a condition as it is stored, checked against the closed sets."""
    known: dict[str, set[Any]] = {"verdicts": set(Verdict), "codes": set(ReasonCode), "who": set(Who)}
    stored: dict[str, Any] = {
        name: sorted({str(_one_of(value, known[name], name)) for value in data.get(name) or ()}) for name in known
    }
    most = data.get("gpus_most")
    stored["gpus_least"] = _bounded(data.get("gpus_least") or 0, 0, 1e6, "gpus_least")
    stored["gpus_most"] = None if most is None else _bounded(most, stored["gpus_least"], 1e6, "gpus_most")
    stored["age_seconds"] = _bounded(data.get("age_seconds") or 0, 0, 90 * 86_400, "age_seconds")
    condition_of(stored)
    return stored


def _one_of(value: str, known: set[Any], name: str) -> str:
    if value not in known:
        raise ApplicationError("rule_not_valid", f"{name} cannot be {value!r}", field=name)
    return value


def _bounded(value: float, least: float, most: float, name: str) -> float:
    if not least <= value <= most:
        raise ApplicationError("rule_not_valid", f"{name} must be between {least:g} and {most:g}", field=name)
    return value


def names_checked(values: Sequence[str], name: str) -> list[str]:
    """Return names of a scope without blanks and doubles."""
    found = sorted({value.strip() for value in values} - {""})
    if len(found) > NAMES_MOST or any(len(value) > 253 or "\x00" in value for value in found):
        raise ApplicationError(
            "rule_not_valid", f"{name} takes up to {NAMES_MOST} names of up to 253 characters", field=name
        )
    return found


def _title(text: str) -> str:
    title = text.strip()
    if not title or len(title) > 120 or "\x00" in title:
        raise ApplicationError("rule_not_valid", "Name the rule with 1 to 120 characters", field="title")
    return title


def _told(row: AlertRule) -> dict[str, object]:
    names = (
        "title",
        "severity",
        "for_seconds",
        "keep_seconds",
        "is_enabled",
        "values",
        "clusters",
        "namespaces",
        "queues",
    )
    return {**{name: getattr(row, name) for name in names}, "condition": row.condition}


def input_of(rule: AlertRule) -> RuleInput:
    """Return a rule as it is set, for changing a part of it."""
    return RuleInput(
        severity=rule.severity,
        for_seconds=rule.for_seconds,
        keep_seconds=rule.keep_seconds,
        is_enabled=rule.is_enabled,
        values=rule.values,
        clusters=rule.clusters,
        namespaces=rule.namespaces,
        queues=rule.queues,
        title=rule.title,
        condition=rule.condition,
    )


def setting_of(rule: AlertRule) -> RuleSetting:
    """Return a stored rule as plain data."""
    return RuleSetting(
        key=rule.key,
        for_seconds=rule.for_seconds,
        keep_seconds=rule.keep_seconds,
        scope=Scope(frozenset(rule.clusters), frozenset(rule.namespaces), frozenset(rule.queues)),
        values=rule.values,
        condition=condition_of(rule.condition) if rule.condition is not None else None,
    )
