"""Which clusters are read, how each kind fares, and how the last polls went."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from apps.clusters.models import Cluster
from apps.clusters.selectors import cluster_get, freshness_list, kind_list, poll_run_list
from apps.dashboard.freshness import WORDS, is_absent
from apps.dashboard.rbac import missing_rules
from apps.dashboard.shell import page, scope_for
from apps.diagnosis.selectors import snapshot_newest

POLLS_SHOWN = 20
SKEW_SAID = 2.0
"""Seconds from which the clocks count as different: what is measured is good to about one."""


@require_safe
def clusters(request: HttpRequest) -> HttpResponse:
    """List the clusters with their freshness."""
    scope = scope_for(request)
    rows = [(row, WORDS[row.state]) for row in freshness_list(scope=scope)]
    return page(request, "dashboard/clusters.html", {"rows": rows}, scope=scope, name="clusters")


@require_safe
def cluster(request: HttpRequest, name: str) -> HttpResponse:
    """Show one cluster: kinds read and not read, polls, the newest analysis."""
    scope = scope_for(request)
    try:
        found = cluster_get(scope=scope, name=name)
    except Cluster.DoesNotExist as error:
        raise Http404(f"No cluster {name} is visible to you") from error
    kinds = list(kind_list(cluster=found))
    context = {
        "cluster": found,
        "kinds": sorted(kinds, key=lambda kind: (kind.is_read, kind.kind)),
        "not_read": [kind for kind in kinds if not kind.is_read and not is_absent(kind)],
        "absent": [kind for kind in kinds if not kind.is_read and is_absent(kind)],
        "rules": missing_rules(kind.kind for kind in kinds if not kind.is_read and kind.reason.startswith("403")),
        "polls": poll_run_list(cluster=found)[:POLLS_SHOWN],
        "snapshot": snapshot_newest(cluster_id=found.pk),
        "skew": skew_words(found.skew_seconds),
    }
    return page(request, "dashboard/cluster.html", context, scope=scope, name="clusters", cluster=name)


def skew_words(seconds: float | None) -> str:
    """Say how a cluster's clock differs from ours; empty where it does not, or does not tell."""
    if seconds is None or abs(seconds) < SKEW_SAID:
        return ""
    return f"{abs(seconds):,.0f} s {'ahead of' if seconds > 0 else 'behind'}"
