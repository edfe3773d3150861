"""The pages of the registry: every code with its meaning, who acts, and what the scheduler calls it."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from apps.dashboard import marks
from apps.dashboard.shell import page, scope_for
from apps.workloads.selectors import GangFilter, gang_list
from apps.workloads.veil import veil_for
from gangdash.reasons import REGISTRY, Reason
from gangdash.reasons.identifiers import MEANINGS

GANGS_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Chapter:
    """One verdict with its codes."""

    verdict: str
    meaning: str
    reasons: tuple[Reason, ...]


def chapters() -> list[Chapter]:
    """Return all codes by verdict, in the order of charts."""
    return [
        Chapter(
            verdict,
            MEANINGS["Verdict"][verdict],
            tuple(reason for reason in REGISTRY.values() if reason.verdict == verdict),
        )
        for verdict in marks.VERDICTS
    ]


@require_safe
def reasons(request: HttpRequest) -> HttpResponse:
    context = {"chapters": chapters(), "total": len(REGISTRY)}
    return page(request, "dashboard/reasons.html", context, scope=scope_for(request), name="reasons")


@require_safe
def reason(request: HttpRequest, code: str) -> HttpResponse:
    """Show one code, by name or by the last part of its address, with the gangs that have it now."""
    found = marks.reason_of(code.upper().replace("-", "_"))
    if found is None:
        raise Http404(f"There is no code {code}")
    scope = scope_for(request)
    gangs = gang_list(scope=scope, view=GangFilter(code=(found.code,)))
    context = {"reason": found, "gangs": gangs[:GANGS_SHOWN], "total": gangs.count(), "veil": veil_for(scope=scope)}
    return page(request, "dashboard/reason.html", context, scope=scope, name="reasons")
