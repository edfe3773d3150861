"""Where messages go: the channels, what was sent to each and how it went. For admins, as a channel tells names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.accounts.logins import client_address
from apps.dashboard.channel_forms import ChannelForm
from apps.dashboard.filters import Chip, Menu, Option
from apps.dashboard.shell import etag_of, fragment, page, person, scope_for
from apps.delivery.channels import (
    channel_create,
    channel_delete,
    channel_pause,
    channel_retry,
    channel_test,
    channel_update,
)
from apps.delivery.choices import ChannelKind, DeliveryKind, DeliveryState
from apps.delivery.models import Channel, Delivery
from apps.delivery.selectors import channel_get, channel_list, delivery_get, delivery_list, held_reason
from apps.delivery.services import delivery_resend
from apps.errors import ApplicationError

NAME = "channels"
NEWEST = 10
PER_PAGE = 50


def _admin(request: HttpRequest) -> None:
    if not person(request).is_admin:
        raise PermissionDenied("Channels are for admins")


def _channel(channel_id: int) -> Channel:
    try:
        return channel_get(channel_id=channel_id)
    except Channel.DoesNotExist as error:
        raise Http404("There is no such channel") from error


@require_safe
def channels(request: HttpRequest) -> HttpResponse:
    """List the channels, how each does and what waits there."""
    _admin(request)
    context = {"channels": channel_list(), "kinds": ChannelKind.choices}
    return page(request, "dashboard/channels.html", context, scope=scope_for(request), name=NAME)


@never_cache
@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
def channel_new(request: HttpRequest, kind: str) -> HttpResponse:
    """Add a channel; a signing key that was made up is on this one answer and nowhere else."""
    _admin(request)
    if kind not in ChannelKind.values:
        raise Http404("There is no such kind of channel")
    wanted = ChannelKind(kind)
    form = ChannelForm(request.POST if request.method == "POST" else None, kind=wanted)
    if request.method == "POST" and form.is_valid():
        try:
            made = channel_create(kind=wanted, values=form.values(), **_who(request))
        except ApplicationError as error:
            form.add_error(_field(form, error), error.detail)
        else:
            if made.signing_key:
                return _channel_page(request, made.channel, signing_key=made.signing_key)
            messages.success(request, f"The channel {made.channel.name} is added. Send a test to try it.")
            return redirect("dashboard:channel", channel_id=made.channel.pk)
    context = {"form": form, "kind": wanted}
    status = 422 if form.errors else 200
    return page(request, "dashboard/channel_new.html", context, scope=scope_for(request), name=NAME, status=status)


@never_cache
@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
def channel(request: HttpRequest, channel_id: int) -> HttpResponse:
    """Show a channel with its newest messages; a posted form changes it."""
    _admin(request)
    found = _channel(channel_id)
    if request.method != "POST":
        return _channel_page(request, found)
    form = ChannelForm(request.POST, kind=ChannelKind(found.kind), channel=found)
    if form.is_valid():
        try:
            channel_update(channel=_channel(channel_id), values=form.values(), **_who(request))
        except ApplicationError as error:
            form.add_error(_field(form, error), error.detail)
        else:
            messages.success(request, "The channel is saved.")
            return redirect("dashboard:channel", channel_id=channel_id)
    return _channel_page(request, found, form=form)


def _channel_page(
    request: HttpRequest, found: Channel, *, form: ChannelForm | None = None, signing_key: str = ""
) -> HttpResponse:
    fresh = _channel(found.pk)
    context = {
        **_state(fresh),
        "form": form or ChannelForm(kind=ChannelKind(fresh.kind), channel=fresh),
        "signing_key": signing_key,
        "etag_channel": _etag(fresh),
    }
    status = 422 if form is not None and form.errors else 200
    return page(request, "dashboard/channel.html", context, scope=scope_for(request), name=NAME, status=status)


@require_safe
def channel_fragment(request: HttpRequest, channel_id: int) -> HttpResponse:
    """Answer how a channel does now; an open page asks again."""
    _admin(request)
    found = _channel(channel_id)
    etag = _etag(found)
    return fragment(
        request, "dashboard/_channel_state.html", lambda: {**_state(found), "etag_channel": etag}, etag=etag
    )


def _state(found: Channel) -> dict[str, Any]:
    return {"channel": found, "rows": _with_reasons(list(delivery_list(channel=found.name)[:NEWEST]))}


def _etag(found: Channel) -> str:
    rows = Delivery.objects.filter(channel=found).values_list("pk", "state", "attempts", "detail")[:NEWEST]
    return etag_of(found.pk, found.is_enabled, found.stopped_at, found.last_success_at, found.last_error, *rows)


def _with_reasons(rows: list[Delivery]) -> list[tuple[Delivery, str]]:
    now = timezone.now()
    return [(row, held_reason(row, now=now)) for row in rows]


Action = Callable[..., object]
ACTIONS: Mapping[str, tuple[Action, Mapping[str, object], str]] = {
    "pause": (channel_pause, {"is_paused": True}, "The channel is paused; its messages wait."),
    "resume": (channel_pause, {"is_paused": False}, "The channel goes on."),
    "retry": (channel_retry, {}, "Everything that waits is tried again now."),
    "delete": (channel_delete, {}, "The channel is deleted."),
}


@require_POST
def channel_do(request: HttpRequest, channel_id: int, action: str) -> HttpResponse:
    """Test, pause, resume, retry or delete a channel."""
    _admin(request)
    found = _channel(channel_id)
    if action == "test":
        channel_test(channel=found, now=timezone.now(), **_who(request))
        messages.success(request, "A sample is on its way; the list below shows how it goes.")
    elif action in ACTIONS:
        do, fields, words = ACTIONS[action]
        do(channel=found, **fields, **_who(request))
        messages.success(request, words)
    else:
        raise Http404("A channel cannot do that")
    return redirect("dashboard:channels") if action == "delete" else redirect("dashboard:channel", channel_id)


@require_safe
def deliveries(request: HttpRequest) -> HttpResponse:
    """Show what was sent, what waits and why, and what gave up."""
    _admin(request)
    names = [(name, name) for name in channel_list().values_list("name", flat=True)]
    choices = {"channel": names, "state": DeliveryState.choices, "kind": DeliveryKind.choices}
    asked = {name: request.GET.get(name, "") for name in choices}
    picked = {name: value for name, value in asked.items() if value in dict(choices[name])}
    pages = Paginator(delivery_list(**picked), PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "rows": _with_reasons(list(pages.object_list)),
        "pages": pages,
        "query": urlencode(picked),
        "chips": _chips(picked, choices),
        "menus": _menus(picked, choices),
    }
    return page(request, "dashboard/channel_log.html", context, scope=scope_for(request), name=NAME)


Choices = Mapping[str, Sequence[tuple[str, str]]]


def _chips(picked: Mapping[str, str], choices: Choices) -> list[Chip]:
    """Return the active filters, each with the address without it."""
    return [
        Chip(name.title(), dict(choices[name])[value], f"?{urlencode({**picked, name: ''})}")
        for name, value in picked.items()
    ]


def _menus(picked: Mapping[str, str], choices: Choices) -> list[Menu]:
    """Return the filters that can be added."""
    return [
        Menu(name.title(), tuple(Option(word, f"?{urlencode({**picked, name: value})}") for value, word in options))
        for name, options in choices.items()
        if name not in picked and len(options) > 1
    ]


@require_POST
def resend(request: HttpRequest, delivery_id: str) -> HttpResponse:
    """Have one message sent now."""
    _admin(request)
    try:
        found = delivery_get(delivery_id=delivery_id)
        delivery_resend(delivery=found, **_who(request))
    except (Delivery.DoesNotExist, ValidationError) as error:
        raise Http404("There is no such message") from error
    except ApplicationError as error:
        messages.error(request, error.detail)
    else:
        messages.success(request, "The message is sent now.")
    return redirect("dashboard:channel", channel_id=found.channel_id)


def _who(request: HttpRequest) -> dict[str, Any]:
    return {"actor": person(request), "address": client_address(request)}


def _field(form: ChannelForm, error: ApplicationError) -> str | None:
    name = str(error.fields.get("field", "name" if error.code == "channel_name_taken" else ""))
    return name if name in form.fields else None
