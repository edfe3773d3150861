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
    }
    return page(request, "dashboard/cluster.html", context, scope=scope, name="clusters", cluster=name)
