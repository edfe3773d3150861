"""/channels and /deliveries: where messages go and how that went, for admins who are logged in themselves.

Addresses, tokens and keys go in and never come out; what is shown is the host.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import F
from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse, extend_schema, inline_serializer
from rest_framework import generics, serializers
from rest_framework.exceptions import NotFound, PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.paging import CursorPages
from apps.api.views import PrivateView, client_address, plain
from apps.delivery.channels import (
    ChannelValues,
    channel_create,
    channel_delete,
    channel_pause,
    channel_retry,
    channel_test,
    channel_update,
    values_of,
)
from apps.delivery.choices import ChannelKind, DeliveryKind, DeliveryState, StopScope
from apps.delivery.messages import Severity
from apps.delivery.models import Channel, Delivery
from apps.delivery.selectors import channel_get, channel_list, delivery_get, delivery_list, held_reason
from apps.delivery.services import delivery_resend


class ChannelSerializer(serializers.Serializer[Channel]):
    """One channel without its secrets."""

    id = serializers.IntegerField(source="pk")
    name = serializers.CharField()
    kind = serializers.ChoiceField(choices=ChannelKind.choices)
    host = serializers.CharField(help_text="All that is shown of the address.")
    slack_channel = serializers.CharField()
    recipients = serializers.ListField(child=serializers.CharField())
    clusters = serializers.ListField(child=serializers.CharField(), help_text="Which may be named; empty means all.")
    namespaces = serializers.ListField(child=serializers.CharField(), help_text="Which may be named; empty means all.")
    is_enabled = serializers.BooleanField()
    digest_after = serializers.IntegerField(allow_null=True)
    digest_minutes = serializers.IntegerField()
    quiet_zone = serializers.CharField()
    quiet_days = serializers.ListField(child=serializers.IntegerField())
    quiet_from = serializers.TimeField(allow_null=True)
    quiet_to = serializers.TimeField(allow_null=True)
    quiet_pages_pass = serializers.BooleanField()
    last_success_at = serializers.DateTimeField(allow_null=True)
    last_error = serializers.CharField()
    last_error_at = serializers.DateTimeField(allow_null=True)
    stopped_at = serializers.DateTimeField(allow_null=True, help_text="Since when the far side refuses everything.")
    due = serializers.IntegerField(help_text="Messages that wait.")
    stopped = serializers.IntegerField(help_text="Messages that were given up.")


class ChannelChange(serializers.Serializer[Any]):
    """What an admin may set. A secret that is left out stays as it is."""

    name = serializers.CharField(max_length=64, required=False)
    url = serializers.CharField(max_length=2000, required=False, write_only=True, help_text="Secret.")
    token = serializers.CharField(max_length=500, required=False, write_only=True, help_text="Secret, of a bot.")
    signing_key = serializers.CharField(max_length=500, required=False, write_only=True, help_text="Secret.")
    slack_channel = serializers.CharField(max_length=80, required=False)
    recipients = serializers.ListField(child=serializers.CharField(max_length=254), required=False, max_length=50)
    clusters = serializers.ListField(child=serializers.CharField(max_length=253), required=False, max_length=200)
    namespaces = serializers.ListField(child=serializers.CharField(max_length=253), required=False, max_length=200)
    digest_after = serializers.IntegerField(min_value=1, max_value=1000, allow_null=True, required=False)
    digest_minutes = serializers.IntegerField(min_value=1, max_value=1440, required=False)
    quiet_zone = serializers.CharField(max_length=64, required=False)
    quiet_days = serializers.ListField(
        child=serializers.IntegerField(min_value=0, max_value=6), required=False, max_length=7
    )
    quiet_from = serializers.TimeField(allow_null=True, required=False)
    quiet_to = serializers.TimeField(allow_null=True, required=False)
    quiet_pages_pass = serializers.BooleanField(required=False)

    def changed(self, values: ChannelValues) -> ChannelValues:
        """Return the values with what was sent in place of what was there."""
        sent = dict(self.validated_data)
        for name in ("recipients", "clusters", "namespaces", "quiet_days"):
            if name in sent:
                sent[name] = tuple(sent[name])
        for name in ("kind", "is_enabled"):
            sent.pop(name, None)
        return replace(values, **sent)


class ChannelUpdate(ChannelChange):
    """What an admin may change of a channel."""

    is_enabled = serializers.BooleanField(required=False, help_text="A paused channel keeps its messages.")


class NewChannelSerializer(ChannelChange):
    """A channel to add."""

    name = serializers.CharField(max_length=64)
    kind = serializers.ChoiceField(choices=ChannelKind.choices)


class MadeChannelSerializer(ChannelSerializer):
    """A new channel; a signing key that was made up is shown this once."""

    signing_key = serializers.CharField()


class DeliverySerializer(serializers.Serializer[Delivery]):
    """One message to one channel."""

    id = serializers.UUIDField(source="uuid", help_text="The webhook's Idempotency-Key.")
    channel = serializers.CharField(source="channel.name")
    kind = serializers.ChoiceField(choices=DeliveryKind.choices)
    key = serializers.CharField()
    thread = serializers.CharField(help_text="The key of the message that this one follows.")
    severity = serializers.ChoiceField(choices=[(level.value, level.value) for level in Severity])
    title = serializers.CharField()
    state = serializers.ChoiceField(choices=DeliveryState.choices)
    held_by = serializers.SerializerMethodField(help_text="Why a due message has not gone out yet.")
    created_at = serializers.DateTimeField()
    due_at = serializers.DateTimeField(allow_null=True)
    attempted_at = serializers.DateTimeField(allow_null=True)
    sent_at = serializers.DateTimeField(allow_null=True)
    attempts = serializers.IntegerField()
    may_repeat = serializers.BooleanField()
    detail = serializers.CharField()
    stop_scope = serializers.ChoiceField(choices=StopScope.choices, allow_blank=True)
    carried_by = serializers.UUIDField(source="carried_by.uuid", allow_null=True, default=None)

    def get_held_by(self, delivery: Delivery) -> str:
        return held_reason(delivery, now=timezone.now())


class ChannelPage(serializers.Serializer[Any]):
    """All channels."""

    results = ChannelSerializer(many=True)


class DeliveryQuery(serializers.Serializer[Any]):
    """Which messages to list."""

    channel = serializers.CharField(max_length=64, required=False)
    state = serializers.ChoiceField(choices=DeliveryState.choices, required=False)
    kind = serializers.ChoiceField(choices=DeliveryKind.choices, required=False)
    page_size = serializers.IntegerField(min_value=1, max_value=CursorPages.max_page_size, required=False)


class AdminView(PrivateView):
    """A view for admins only."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if not self.reader.is_admin:
            raise PermissionDenied("Channels are for admins")

    @property
    def who(self) -> dict[str, Any]:
        return {"actor": self.reader, "address": client_address(self.request)}


class ChannelList(AdminView):
    """The channels."""

    @extend_schema(operation_id="channels_list", responses=ChannelPage)
    def get(self, request: Request) -> Response:
        return Response(ChannelPage({"results": channel_list()}).data)

    @extend_schema(operation_id="channels_create", request=NewChannelSerializer, responses={201: MadeChannelSerializer})
    def post(self, request: Request) -> Response:
        wanted = NewChannelSerializer(data=request.data)
        wanted.is_valid(raise_exception=True)
        values = wanted.changed(ChannelValues(name=""))
        made = channel_create(kind=ChannelKind(wanted.validated_data["kind"]), values=values, **self.who)
        shown = ChannelSerializer(channel_get(channel_id=made.channel.pk)).data
        return Response({**shown, "signing_key": made.signing_key}, status=201)


class ChannelDetail(AdminView):
    """One channel."""

    @extend_schema(operation_id="channels_retrieve", responses=ChannelSerializer)
    def get(self, request: Request, channel_id: int) -> Response:
        return Response(ChannelSerializer(channel_get(channel_id=channel_id)).data)

    @extend_schema(operation_id="channels_update", request=ChannelUpdate, responses=ChannelSerializer)
    def patch(self, request: Request, channel_id: int) -> Response:
        found = channel_get(channel_id=channel_id)
        wanted = ChannelUpdate(data=request.data)
        wanted.is_valid(raise_exception=True)
        if set(wanted.validated_data) - {"is_enabled"}:
            channel_update(channel=found, values=wanted.changed(values_of(found)), **self.who)
        if "is_enabled" in wanted.validated_data:
            channel_pause(channel=found, is_paused=not wanted.validated_data["is_enabled"], **self.who)
        return Response(ChannelSerializer(channel_get(channel_id=channel_id)).data)

    @extend_schema(operation_id="channels_delete", responses={204: OpenApiResponse(description="Deleted.")})
    def delete(self, request: Request, channel_id: int) -> Response:
        channel_delete(channel=channel_get(channel_id=channel_id), **self.who)
        return Response(status=204)


class ChannelTest(AdminView):
    """The test button."""

    @extend_schema(operation_id="channels_test", request=None, responses={202: DeliverySerializer})
    def post(self, request: Request, channel_id: int) -> Response:
        found = channel_get(channel_id=channel_id)
        sent = channel_test(channel=found, now=timezone.now(), **self.who)
        return Response(DeliverySerializer(sent).data, status=202)


class ChannelRetry(AdminView):
    """Lets a stopped channel try again, with what it gave up."""

    @extend_schema(
        operation_id="channels_retry",
        request=None,
        responses={202: inline_serializer("ChannelRetried", {"due": serializers.IntegerField()})},
    )
    def post(self, request: Request, channel_id: int) -> Response:
        due = channel_retry(channel=channel_get(channel_id=channel_id), **self.who)
        return Response({"due": due}, status=202)


class DeliveryList(AdminView, generics.GenericAPIView[Delivery]):
    """The delivery log, newest first."""

    serializer_class = DeliverySerializer
    pagination_class = CursorPages
    queryset = Delivery.objects.none()

    @extend_schema(operation_id="deliveries_list", parameters=[DeliveryQuery], responses=DeliverySerializer(many=True))
    def get(self, request: Request) -> Response:
        query = DeliveryQuery(data=plain(request.query_params))
        query.is_valid(raise_exception=True)
        wanted = {name: query.validated_data.get(name, "") for name in ("channel", "state", "kind")}
        rows = delivery_list(**wanted).annotate(sort_key=F("created_at")).order_by("-sort_key", "-pk")
        return self.get_paginated_response(self.get_serializer(self.paginate_queryset(rows), many=True).data)


class DeliveryDetail(AdminView):
    """One message of the log."""

    @extend_schema(operation_id="deliveries_retrieve", responses=DeliverySerializer)
    def get(self, request: Request, delivery_id: str) -> Response:
        return Response(DeliverySerializer(_delivery(delivery_id)).data)


class DeliveryResend(AdminView):
    """Sends one message again, or now."""

    @extend_schema(operation_id="deliveries_resend", request=None, responses={202: DeliverySerializer})
    def post(self, request: Request, delivery_id: str) -> Response:
        delivery_resend(delivery=_delivery(delivery_id), **self.who)
        return Response(DeliverySerializer(_delivery(delivery_id)).data, status=202)


def _delivery(delivery_id: str) -> Delivery:
    try:
        return delivery_get(delivery_id=delivery_id)
    except ValidationError as error:
        raise NotFound from error
