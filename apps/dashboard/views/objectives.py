"""How fast gangs are to start: the objectives of one cluster with what is left of their budgets, and a form to set one.

Standings count gangs of every namespace, so they are for those who see all; an admin sets and takes back.
"""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from apps.accounts.logins import client_address
from apps.clusters.models import Cluster
from apps.clusters.selectors import cluster_get
from apps.dashboard.links import in_cluster
from apps.dashboard.numbers import number
from apps.dashboard.shell import page, person, scope_for
from apps.dashboard.views.inventory import Picked, picked
from apps.errors import ApplicationError
from apps.inventory.selectors import queue_list
from apps.workloads.models import ServiceObjective
from apps.workloads.objectives import objective_standings
from apps.workloads.services import ObjectiveTerms, objective_remove, objective_set

QUEUES_SUGGESTED = 200


class ObjectiveForm(forms.Form):
    """What an admin promises; shares in per cent, spans in minutes."""

    queue = forms.CharField(
        required=False, max_length=253, help_text="With the queues below it. Empty: the whole cluster."
    )
    percent = forms.FloatField(label="Per cent of the gangs", min_value=50, max_value=99.99, initial=95)
    gpus_max = forms.FloatField(label="Up to GPUs", min_value=0, initial=64)
    minutes = forms.FloatField(label="Start within minutes", min_value=0.1, max_value=10_080, initial=10)
    window_days = forms.IntegerField(label="Over days", min_value=1, max_value=366, initial=28)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["queue"].widget.attrs |= {"list": "queues", "autocomplete": "off"}

    def terms(self) -> ObjectiveTerms:
        values = self.cleaned_data
        return ObjectiveTerms(
            share=values["percent"] / 100,
            gpus_max=values["gpus_max"],
            within_seconds=max(1, round(values["minutes"] * 60)),
            window_days=values["window_days"],
        )


@require_http_methods(["GET", "HEAD", "POST"])
def objectives(request: HttpRequest) -> HttpResponse:
    """List the objectives of one cluster; a posted form sets one."""
    place = picked(request)
    form = ObjectiveForm(request.POST if request.method == "POST" else None)
    if request.method == "POST":
        _admin(request)
        cluster = _cluster(request, place.cluster)
        if form.is_valid():
            try:
                objective_set(cluster=cluster, queue=form.cleaned_data["queue"], terms=form.terms(), **_who(request))
            except ApplicationError as error:
                form.add_error(None, error.detail)
            else:
                messages.success(request, "The objective is set.")
                return redirect(in_cluster("objectives", cluster.name))
    return _page(request, place, form)


def _page(request: HttpRequest, place: Picked, form: ObjectiveForm) -> HttpResponse:
    rows: list[Any] = []
    if place.scope.sees_all and place.cluster:
        cluster = _cluster(request, place.cluster)
        rows = objective_standings(cluster_id=cluster.pk, now=timezone.now())
    context = {
        "rows": [(row, standing, row.share * 100, _left(standing.budget_left)) for row, standing in rows],
        "overspent": sum((standing.budget_left or 0) < 0 for _, standing in rows),
        "cluster": place.cluster,
        "sees_all": place.scope.sees_all,
        "may_set": person(request).is_admin and bool(place.cluster),
        "form": form,
        "queues": queue_list(scope=place.scope, cluster=place.cluster).values_list("name", flat=True)[:QUEUES_SUGGESTED]
        if place.cluster else (),
        "set_url": in_cluster("objectives", place.cluster) if place.cluster else reverse("dashboard:objectives"),
    }  # fmt: skip
    status = 422 if form.errors else 200
    template = "dashboard/objectives.html"
    return page(request, template, context, scope=place.scope, name="objectives", cluster=place.cluster, status=status)


@require_POST
def objective_drop(request: HttpRequest, objective_id: int) -> HttpResponse:
    """Take an objective back."""
    _admin(request)
    row = ServiceObjective.objects.filter(pk=objective_id).select_related("cluster").first()
    if row is None:
        raise Http404("There is no such objective")
    objective_remove(cluster=row.cluster, queue=row.queue, **_who(request))
    messages.success(request, "The objective is taken back.")
    return redirect(in_cluster("objectives", row.cluster.name))


def _left(budget: float | None) -> tuple[str, str]:
    """Return the family of colour and the words of a budget."""
    if budget is None:
        return "none", "no start counted yet"
    text = f"{number(abs(round(budget * 100)))} %"
    return ("bad", f"overspent by {text}") if budget < 0 else ("ok", f"{text} left")


def _cluster(request: HttpRequest, name: str) -> Cluster:
    try:
        return cluster_get(scope=scope_for(request), name=name)
    except Cluster.DoesNotExist as error:
        raise Http404("There is no such cluster") from error


def _admin(request: HttpRequest) -> None:
    if not person(request).is_admin:
        raise PermissionDenied("Objectives are set by admins")


def _who(request: HttpRequest) -> dict[str, Any]:
    return {"actor": person(request), "address": client_address(request)}
