"""A person's own page: who they are, what they may see, their password and their tokens."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from apps.accounts.choices import TokenScope
from apps.accounts.logins import client_address
from apps.accounts.selectors import token_list
from apps.accounts.services import token_create, token_revoke, user_set_password
from apps.dashboard.forms import PasswordForm, TokenForm
from apps.dashboard.shell import page, person, scope_for
from apps.errors import ApplicationError


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def account(request: HttpRequest) -> HttpResponse:
    """Show the account; a posted form makes a token, whose text is on this one answer and nowhere else."""
    user, scope = person(request), scope_for(request)
    form = TokenForm(request.POST or None)
    made = None
    if request.method == "POST" and form.is_valid():
        try:
            made = _make_token(request, form.cleaned_data)
            form = TokenForm()
        except ApplicationError as error:
            form.add_error("name", error.detail)
    context = {
        "form": form,
        "made": made,
        "tokens": token_list(user=user),
        "grants": sorted(scope.namespaces),
        "role": user.get_role_display(),
    }
    return page(request, "dashboard/account.html", context, scope=scope, name="account")


def _make_token(request: HttpRequest, values: dict[str, Any]) -> str:
    days = values["days"]
    return token_create(
        user=person(request),
        name=values["name"],
        scopes=[TokenScope(scope) for scope in values["scopes"]],
        expires_at=timezone.now() + timedelta(days=int(days)) if days else None,
        address=client_address(request),
    ).text


@require_POST
def revoke_token(request: HttpRequest, token_id: int) -> HttpResponse:
    """End a token of one's own."""
    try:
        token_revoke(user=person(request), token_id=token_id, address=client_address(request))
    except ApplicationError as error:
        messages.error(request, error.detail)
    else:
        messages.success(request, "The token is revoked.")
    return redirect("dashboard:account")


@never_cache
@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
def password(request: HttpRequest) -> HttpResponse:
    """Change the password; the only page that a person with a one-time password gets."""
    user = person(request)
    form = PasswordForm(request.POST if request.method == "POST" else None, user=user)
    if request.method == "POST" and form.is_valid():
        try:
            user_set_password(user=user, password=form.cleaned_data["new"], address=client_address(request))
        except ApplicationError as error:
            form.add_error("new", error.detail)
        else:
            update_session_auth_hash(request, user)
            messages.success(request, "The password is changed.")
            return redirect("dashboard:triage")
    return render(request, "registration/password.html", {"form": form, "first": user.must_change_password})
