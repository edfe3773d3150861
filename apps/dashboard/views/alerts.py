"""Alerts: what fires, what fired, what is muted; one alert with its gangs; muting and acknowledging.

Who sees single namespaces sees the alerts about gangs of theirs. Muting and acknowledging speak for everybody, so they
take the right to see everything; what a link in a message asks for is asked again on a page before it happens.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.accounts.logins import client_address
from apps.accounts.scope import Scope
from apps.alerts.choices import AlertState, MuteKind
from apps.alerts.models import Alert, AlertClock, Mute
from apps.alerts.selectors import alert_gangs, alert_get, alert_list, late_list, mutes_now, route_list, rule_list
from apps.alerts.services.acknowledging import alert_acknowledge
from apps.alerts.services.muting import MuteInput, mute_create, mute_end
from apps.clusters.models import Cluster
from apps.dashboard.alert_forms import AcknowledgeForm, MuteForm
from apps.dashboard.shell import page, person, scope_for
from apps.delivery.models import Channel
from apps.errors import ApplicationError
from apps.workloads.models import Gang
from apps.workloads.selectors import gang_get
from apps.workloads.veil import veil_for

NAME = "alerts"
FIRING_SHOWN = 200
RECENT_PER_PAGE = 50


@require_safe
def alerts(request: HttpRequest) -> HttpResponse:
    """List what fires, what ended lately, what is muted, the rules and where they lead."""
    scope, now = scope_for(request), timezone.now()
    cluster = request.GET.get("cluster", "").replace("\x00", "")
    firing = alert_list(scope=scope, state=AlertState.FIRING, cluster=cluster)
    recent = alert_list(scope=scope, state=AlertState.RESOLVED, cluster=cluster).order_by("-resolved_at", "-pk")
    mutes = mutes_now(now=now) if scope.sees_all else []
    context = {
        "firing": list(firing[:FIRING_SHOWN]),
        "pages": Paginator(recent, RECENT_PER_PAGE).get_page(request.GET.get("page")),
        "mutes": mutes,
        "rules": list(rule_list()) if scope.sees_all else [],
        "routes": list(route_list()) if scope.sees_all else [],
        "blind": _blind(scope, cluster),
        "late": late_list(scope=scope, now=now, cluster=cluster),
        "sees_all": scope.sees_all,
        "is_admin": person(request).is_admin,
        "veil": veil_for(scope=scope),
    }
    return page(request, "dashboard/alerts.html", context, scope=scope, name=NAME, cluster=cluster)


def _blind(scope: Scope, cluster: str) -> list[AlertClock]:
    """Return the clusters whose rules keep still, with since when."""
    clocks = AlertClock.objects.exclude(blind_since=None).filter(scope.cluster_filter(cluster_field="cluster__name"))
    clocks = clocks.filter(cluster__is_read=True).select_related("cluster").order_by("cluster__name")
    return list(clocks.filter(cluster__name=cluster) if cluster else clocks)


@require_safe
def alert(request: HttpRequest, alert_id: int) -> HttpResponse:
    """Show one alert: what it found, which gangs, whom it told, who takes care."""
    return _alert_page(request, _found(scope_for(request), alert_id), AcknowledgeForm())


def _alert_page(request: HttpRequest, found: Alert, form: AcknowledgeForm, *, status: int = 200) -> HttpResponse:
    scope = scope_for(request)
    told = Channel.objects.filter(pk__in=found.told_to).order_by("name") if scope.sees_all else Channel.objects.none()
    context = {
        "alert": found,
        "members": list(alert_gangs(scope=scope, alert=found)),
        "told": [channel.name for channel in told],
        "form": form,
        "sees_all": scope.sees_all,
        "veil": veil_for(scope=scope),
        "clock": AlertClock.objects.filter(cluster=found.cluster_id).first(),
    }
    return page(
        request, "dashboard/alert.html", context, scope=scope, name=NAME, cluster=found.cluster.name, status=status
    )


def _found(scope: Scope, alert_id: int) -> Alert:
    try:
        return alert_get(scope=scope, alert_id=alert_id)
    except Alert.DoesNotExist as error:
        raise Http404("There is no such alert, or none that you may see") from error


def _whole_view(scope: Scope) -> None:
    if not scope.sees_all:
        raise PermissionDenied("This speaks for everybody, so it takes the right to see everything")


@require_POST
def acknowledge(request: HttpRequest, alert_id: int) -> HttpResponse:
    """Write down that the person takes care of an alert."""
    scope = scope_for(request)
    _whole_view(scope)
    found, form = _found(scope, alert_id), AcknowledgeForm(request.POST)
    if not form.is_valid():
        return _alert_page(request, found, form, status=422)
    try:
        alert_acknowledge(
            alert=found,
            actor=person(request),
            note=form.cleaned_data["note"],
            now=timezone.now(),
            address=client_address(request),
        )
    except ApplicationError as error:
        messages.error(request, error.detail)
    else:
        messages.success(request, "You have acknowledged the alert.")
    return redirect("dashboard:alert", alert_id=found.pk)


# --- mutes -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Mutable:
    """What a mute may be about here: per kind its value and how it is called. ``back`` is where it was asked for."""

    cluster: Cluster
    values: dict[str, str]
    words: dict[str, str]
    title: str
    back: str

    @property
    def kinds(self) -> list[tuple[str, str]]:
        return list(self.words.items())


@require_http_methods(["GET", "HEAD", "POST"])
def mute_new(request: HttpRequest) -> HttpResponse:
    """Ask what to mute, for how long and why; only the posted form does it."""
    scope = scope_for(request)
    _whole_view(scope)
    about = _mutable(request, scope)
    data = request.POST if request.method == "POST" else None
    form = MuteForm(data, kinds=about.kinds, hours=request.GET.get("hours", ""))
    if request.method == "POST" and form.is_valid() and _mute(request, form, about):
        return redirect("dashboard:alerts")
    context = {"form": form, "about": about}
    status = 422 if request.method == "POST" else 200
    return page(
        request, "dashboard/alert_mute.html", context, scope=scope, name=NAME, cluster=about.cluster.name, status=status
    )


def _mutable(request: HttpRequest, scope: Scope) -> Mutable:
    """Return what the address names: an alert, or a gang."""
    key = request.GET.get("alert", "")
    if key:
        if not (key.isascii() and key.isdigit() and len(key) < 16):
            raise Http404("There is no such alert")
        return _of_alert(_found(scope, int(key)), scope)
    try:
        return _of_gang(gang_get(scope=scope, public_id=request.GET.get("gang", "")))
    except Gang.DoesNotExist as error:
        raise Http404("There is nothing here to mute") from error


def _of_alert(found: Alert, scope: Scope) -> Mutable:
    values: dict[str, str] = {MuteKind.SIGNATURE: found.signature}
    words: dict[str, str] = {MuteKind.SIGNATURE: "This cause"}
    gangs = [row.gang for row in alert_gangs(scope=scope, alert=found)[:2]]
    if len(gangs) == 1:
        values[MuteKind.GANG] = f"{gangs[0].namespace}/{gangs[0].name}"
        words[MuteKind.GANG] = f"The gang {values[MuteKind.GANG]}, whatever it waits for"
    if found.queue:
        values[MuteKind.QUEUE] = found.queue
        words[MuteKind.QUEUE] = f"Everything about queue {found.queue}"
    values[MuteKind.CLUSTER] = ""
    words[MuteKind.CLUSTER] = f"Everything about cluster {found.cluster.name}"
    return Mutable(found.cluster, values, words, found.title, found.rule.title)


def _of_gang(gang: Gang) -> Mutable:
    path = f"{gang.namespace}/{gang.name}"
    words = {str(MuteKind.GANG): f"The gang {path}, whatever it waits for"}
    return Mutable(gang.cluster, {str(MuteKind.GANG): path}, words, path, gang.sentence)


def _mute(request: HttpRequest, form: MuteForm, about: Mutable) -> bool:
    values, now = form.cleaned_data, timezone.now()
    wanted = MuteInput(
        kind=values["kind"],
        value=about.values[values["kind"]],
        cluster=about.cluster,
        reason=values["reason"],
        ends_at=now + timedelta(hours=int(values["hours"])),
    )
    try:
        mute_create(values=wanted, actor=person(request), now=now, address=client_address(request))
    except ApplicationError as error:
        form.add_error(None, error.detail)
        return False
    messages.success(request, "Muted. It still fires and is shown, and nobody is told.")
    return True


@require_POST
def mute_end_now(request: HttpRequest, mute_id: int) -> HttpResponse:
    """End a mute before its time."""
    _whole_view(scope_for(request))
    found = Mute.objects.filter(pk=mute_id).select_related("cluster").first()
    if found is None:
        raise Http404("There is no such mute")
    mute_end(mute=found, actor=person(request), now=timezone.now(), address=client_address(request))
    messages.success(request, "The mute has ended; what still fires is told with the next look.")
    return redirect("dashboard:alerts")
