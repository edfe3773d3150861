"""The rules of alerts and where they lead: setting them, making one's own, and what they would have done last week.

Those who see everything may read and try; only admins may save, as a rule decides who is woken up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from apps.accounts.logins import client_address
from apps.accounts.scope import Scope
from apps.alerts.lookback import Lookback, lookback_all
from apps.alerts.models import AlertRule, Route
from apps.alerts.rules import RULES
from apps.alerts.selectors import rule_list
from apps.alerts.services.routes import route_delete, route_save
from apps.alerts.services.rules import custom_row, rule_create, rule_delete, rule_row, rule_update, setting_of
from apps.clusters.selectors import cluster_list
from apps.dashboard.alert_forms import BuiltInForm, CustomForm, RouteForm
from apps.dashboard.shell import page, person, scope_for
from apps.errors import ApplicationError

NAME = "alerts"
DAYS = 7
MOMENTS_SHOWN = 20


def _reader(request: HttpRequest) -> Scope:
    scope = scope_for(request)
    if not scope.sees_all:
        raise PermissionDenied("Rules and what they would have found name gangs of every namespace")
    return scope


def _admin(request: HttpRequest) -> None:
    if not person(request).is_admin:
        raise PermissionDenied("Rules and routes are for admins")


@require_http_methods(["GET", "HEAD", "POST"])
def rule_new(request: HttpRequest) -> HttpResponse:
    """Make a rule of one's own; trying it first stores nothing."""
    scope = _reader(request)
    form = CustomForm(request.POST if request.method == "POST" else None)
    return _rule_page(request, scope, None, form)


@require_http_methods(["GET", "HEAD", "POST"])
def rule_edit(request: HttpRequest, key: str) -> HttpResponse:
    """Set a rule, or look what it would have done as it is set or as it is typed."""
    scope, rule = _reader(request), _rule(key)
    data = request.POST if request.method == "POST" else None
    form = CustomForm(data, rule=rule) if rule.is_custom else BuiltInForm(data, rule=rule)
    return _rule_page(request, scope, rule, form)


def _rule_page(
    request: HttpRequest, scope: Scope, rule: AlertRule | None, form: CustomForm | BuiltInForm
) -> HttpResponse:
    looked: Sequence[Lookback] | None = None
    is_posted = request.method == "POST"
    if is_posted and form.is_valid():
        try:
            if request.POST.get("do") == "save":
                return _save(request, rule, form)
            tried = rule_row(rule=rule, values=form.rule_input()) if rule else custom_row(values=form.rule_input())
            looked = _looked(scope, tried)
        except ApplicationError as error:
            form.add_error(_field(form, error), error.detail)
    elif not is_posted and rule is not None and "look" in request.GET:
        looked = _looked(scope, rule)
    context = {
        "rule": rule,
        "needs": RULES[rule.key] if rule and not rule.is_custom else None,
        "form": form,
        "looked": looked,
        "days": DAYS,
        "moments_shown": MOMENTS_SHOWN,
        "is_admin": person(request).is_admin,
    }
    status = 422 if is_posted and form.errors else 200
    return page(request, "dashboard/alert_rule.html", context, scope=scope, name=NAME, status=status)


def _field(form: Any, error: ApplicationError) -> str | None:
    name = str(error.fields.get("field", ""))
    return name if name in form.fields else None


def _rule(key: str) -> AlertRule:
    found = rule_list().filter(key=key).first()
    if found is None:
        raise Http404("There is no such rule")
    return found


def _looked(scope: Scope, rule: AlertRule) -> list[Lookback]:
    """Return what a rule would have done in the last days, by cluster."""
    clusters = cluster_list(scope=scope).filter(is_read=True)
    return lookback_all(clusters=clusters, setting=setting_of(rule), end=timezone.now(), days=DAYS)


def _save(request: HttpRequest, rule: AlertRule | None, form: CustomForm | BuiltInForm) -> HttpResponse:
    _admin(request)
    actor, address, values = person(request), client_address(request), form.rule_input()
    if rule is None:
        saved = rule_create(values=values, actor=actor, address=address)
    else:
        saved = rule_update(rule=rule, values=values, actor=actor, address=address)
    messages.success(request, f"The rule {saved.title} is saved.")
    return redirect("dashboard:alert-rule", key=saved.key)


@require_POST
def rule_remove(request: HttpRequest, key: str) -> HttpResponse:
    """Delete a custom rule and its alerts."""
    _reader(request)
    _admin(request)
    try:
        rule_delete(rule=_rule(key), actor=person(request), address=client_address(request))
    except ApplicationError as error:
        messages.error(request, error.detail)
    else:
        messages.success(request, "The rule is deleted.")
    return redirect("dashboard:alerts")


# --- routes ------------------------------------------------------------------------------------------------------


@require_http_methods(["GET", "HEAD", "POST"])
def route_new(request: HttpRequest) -> HttpResponse:
    return _route_page(request, None)


@require_http_methods(["GET", "HEAD", "POST"])
def route_edit(request: HttpRequest, route_id: int) -> HttpResponse:
    return _route_page(request, _route(route_id))


def _route(route_id: int) -> Route:
    found = Route.objects.filter(pk=route_id).select_related("channel", "escalate_to").first()
    if found is None:
        raise Http404("There is no such route")
    return found


def _route_page(request: HttpRequest, route: Route | None) -> HttpResponse:
    """Set a route; for admins only, as it decides which names leave the house."""
    scope = _reader(request)
    _admin(request)
    form = RouteForm(request.POST if request.method == "POST" else None, rules=list(rule_list()), route=route)
    if request.method == "POST" and form.is_valid():
        try:
            saved = route_save(
                route=route, values=form.route_input(), actor=person(request), address=client_address(request)
            )
        except ApplicationError as error:
            form.add_error(_field(form, error), error.detail)
        else:
            messages.success(request, f"The route {saved.name} is saved.")
            return redirect("dashboard:alerts")
    status = 422 if request.method == "POST" else 200
    context = {"form": form, "route": route}
    return page(request, "dashboard/alert_route.html", context, scope=scope, name=NAME, status=status)


@require_POST
def route_remove(request: HttpRequest, route_id: int) -> HttpResponse:
    _reader(request)
    _admin(request)
    route_delete(route=_route(route_id), actor=person(request), address=client_address(request))
    messages.success(request, "The route is deleted.")
    return redirect("dashboard:alerts")
