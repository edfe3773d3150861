"""Health reports: what was reported, making one now, and the schedules that make them.

A report names gangs of every namespace, so those who see only some get none of it. Schedules and sending are for
admins, as they decide which names leave the house.
"""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.accounts.logins import client_address
from apps.accounts.models import User
from apps.accounts.scope import Scope
from apps.clusters.selectors import cluster_get, cluster_list
from apps.dashboard import report_list as report_list_view
from apps.dashboard.links import absolute
from apps.dashboard.report_forms import MakeForm, ScheduleForm
from apps.dashboard.shell import etag_of, fragment, page, person, scope_for
from apps.delivery.models import Channel
from apps.errors import ApplicationError
from apps.reports.choices import ReportForm, ReportState
from apps.reports.comparing import compare
from apps.reports.models import Report, ReportSchedule
from apps.reports.renderers import CONTENT_TYPES, file_name, render
from apps.reports.renderers.page import view_of
from apps.reports.renderers.prepare import IN_SITE, prepared
from apps.reports.schedule import next_due
from apps.reports.scheduling import schedule_delete, schedule_save, zone_names
from apps.reports.selectors import (
    report_choices,
    report_content,
    report_get,
    report_list,
    schedule_get,
    schedule_list,
)
from apps.reports.services import report_request, report_send
from apps.reports.telling import channel_may_have

REPORTS_PER_PAGE = 50
NAME = "reports"


# --- the list ----------------------------------------------------------------------------------------------------


@require_http_methods(["GET", "HEAD", "POST"])
def reports(request: HttpRequest) -> HttpResponse:
    """List reports and schedules; take the wish for one more."""
    scope, now = scope_for(request), timezone.now()
    clusters = list(cluster_list(scope=scope)) if scope.sees_all else []
    form = MakeForm(request.POST if request.method == "POST" else None, clusters=clusters, now=now)
    if request.method == "POST":
        made = _request(request, form, scope)
        if made is not None:
            return redirect("dashboard:report", report_id=made.pk)
    view = report_list_view.parse(request.GET.dict())
    found = report_list(scope=scope, cluster=view.cluster, schedule=view.schedule, state=view.state)
    shown = Paginator(found, REPORTS_PER_PAGE).get_page(request.GET.get("page"))
    schedules, names = list(schedule_list(scope=scope)), [cluster.name for cluster in clusters]
    rows = list(shown.object_list)
    context = {
        "sees_all": scope.sees_all,
        "is_admin": person(request).is_admin,
        "pages": shown,
        "rows": rows,
        "newest": next((row for row in rows if row.headline), None),
        "view": view,
        "chips": report_list_view.chips(view),
        "menus": report_list_view.menus(view, clusters=names, schedules=[row.name for row in schedules]),
        "clusters": names,
        "schedules": [(row, next_due(row.plan, after=now) if row.is_enabled else None) for row in schedules],
        "form": form,
        "forms": ReportForm.choices,
    }
    status = 422 if request.method == "POST" else 200
    return page(request, "dashboard/reports.html", context, scope=scope, name=NAME, status=status)


def _request(request: HttpRequest, form: MakeForm, scope: Scope) -> Report | None:
    if not scope.sees_all:
        raise PermissionDenied("A report names gangs of every namespace")
    if not form.is_valid():
        return None
    try:
        return report_request(
            user=person(request),
            cluster=cluster_get(scope=scope, name=form.cleaned_data["cluster"]),
            covered=form.covered,
            zone=form.cleaned_data["zone"],
            address=client_address(request),
        )
    except ApplicationError as error:
        form.add_error(None, error.detail)
        return None


# --- one report --------------------------------------------------------------------------------------------------


@require_safe
def report(request: HttpRequest, report_id: int) -> HttpResponse:
    """Show one report, beside another of the same length where the address names one."""
    scope = scope_for(request)
    found = _found(scope, report_id)
    about = {"report_row": found, "etag_report": _etag(found), "forms": ReportForm.choices}
    context = {**about, **_shown(found, scope, request)}
    return page(request, "dashboard/report.html", context, scope=scope, name=NAME, cluster=found.cluster.name)


@require_safe
def report_fragment(request: HttpRequest, report_id: int) -> HttpResponse:
    """Say how far a report is; one that is no longer waited for has the whole page drawn again."""
    found = _found(scope_for(request), report_id)
    context = {"report_row": found, "etag_report": _etag(found)}
    response = fragment(request, "dashboard/_report_progress.html", lambda: context, etag=_etag(found))
    if found.state != ReportState.WAITING:
        response["HX-Refresh"] = "true"
    return response


@require_safe
def report_file(request: HttpRequest, report_id: int, form: str) -> HttpResponse:
    """Hand out a report as a file; its links are whole addresses."""
    try:
        content = report_content(_found(scope_for(request), report_id))
    except ApplicationError as error:
        raise Http404(error.detail) from error
    wanted = ReportForm(form)
    text = render(content, wanted, base_url=absolute(request, "/").rstrip("/"))
    response = HttpResponse(text, content_type=CONTENT_TYPES[wanted])
    response["Content-Disposition"] = f'attachment; filename="{file_name(content, wanted)}"'
    response["Cache-Control"] = "private, no-store"
    return response


@require_POST
def report_tell(request: HttpRequest, report_id: int) -> HttpResponse:
    """Send a report to a channel."""
    user = _admin(request)
    found = _found(scope_for(request), report_id)
    number = _whole(request.POST.get("channel", ""))
    channel = Channel.objects.filter(pk=number).first() if number is not None else None
    if channel is None:
        raise Http404("There is no such channel")
    try:
        report_send(report=found, channel=channel, actor=user, now=timezone.now(), address=client_address(request))
    except ApplicationError as error:
        messages.error(request, error.detail)
    else:
        messages.success(request, f"{channel.name} gets this report; the delivery log says when it arrived.")
    return redirect("dashboard:report", report_id=found.pk)


def _found(scope: Scope, report_id: int) -> Report:
    try:
        return report_get(scope=scope, report_id=report_id)
    except Report.DoesNotExist as error:
        raise Http404("No such report is visible to you") from error


def _shown(found: Report, scope: Scope, request: HttpRequest) -> dict[str, Any]:
    """Return what the page shows of a report that is made; nothing of one that is not."""
    if found.state != ReportState.DONE:
        return {}
    try:
        content = prepared(report_content(found), base_url=IN_SITE)
    except ApplicationError as error:
        return {"fault": error.detail}
    channels = Channel.objects.all() if person(request).is_admin else Channel.objects.none()
    return {
        "report": view_of(content),
        "others": report_choices(found),
        "channels": [row for row in channels if channel_may_have(row, clusters=[found.cluster.name])],
        **_beside(found, scope, request),
    }


def _beside(found: Report, scope: Scope, request: HttpRequest) -> dict[str, Any]:
    number = _whole(request.GET.get("with", ""))
    if number is None:
        return {}
    other = _found(scope, number)
    if other.cluster_id != found.cluster_id:
        raise Http404("That report is about another cluster")
    try:
        rows = compare(report_content(found), report_content(other))
    except ApplicationError as error:
        return {"beside_fault": error.detail, "other": other}
    return {"beside": rows, "other": other}


def _etag(found: Report) -> str:
    return etag_of(found.pk, found.state, found.attempts, found.started_at)


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


# --- schedules ---------------------------------------------------------------------------------------------------


@require_http_methods(["GET", "HEAD", "POST"])
def schedule_new(request: HttpRequest) -> HttpResponse:
    """Make a schedule."""
    return _schedule_form(request, None)


@require_http_methods(["GET", "HEAD", "POST"])
def schedule_edit(request: HttpRequest, schedule_id: int) -> HttpResponse:
    """Change a schedule."""
    return _schedule_form(request, _schedule(request, schedule_id))


@require_POST
def schedule_remove(request: HttpRequest, schedule_id: int) -> HttpResponse:
    """Remove a schedule; its reports stay."""
    user = _admin(request)
    schedule_delete(schedule=_schedule(request, schedule_id), actor=user, address=client_address(request))
    return redirect("dashboard:reports")


def _schedule_form(request: HttpRequest, schedule: ReportSchedule | None) -> HttpResponse:
    user = _admin(request)
    form = ScheduleForm(request.POST if request.method == "POST" else None, schedule=schedule)
    if request.method == "POST" and form.is_valid():
        try:
            schedule_save(
                values=form.values(),
                actor=user,
                now=timezone.now(),
                schedule=schedule,
                address=client_address(request),
            )
        except ApplicationError as error:
            form.add_error(None, error.detail)
        else:
            return redirect("dashboard:reports")
    status = 422 if request.method == "POST" else 200
    context = {"form": form, "schedule": schedule, "zones": zone_names()}
    return page(request, "dashboard/report_schedule.html", context, scope=scope_for(request), name=NAME, status=status)


def _schedule(request: HttpRequest, schedule_id: int) -> ReportSchedule:
    _admin(request)
    try:
        return schedule_get(scope=scope_for(request), schedule_id=schedule_id)
    except ReportSchedule.DoesNotExist as error:
        raise Http404("There is no such schedule") from error


def _admin(request: HttpRequest) -> User:
    user = person(request)
    if not user.is_admin:
        raise PermissionDenied("Schedules and sending are for admins")
    return user
