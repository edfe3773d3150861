"""/alerts: what fires and fired, and the mutes; acknowledging and muting ask for the person, not for a token.

Who sees single namespaces gets the alerts about gangs of theirs, without the names of others.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import F, QuerySet
from django.urls import reverse
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import generics, serializers
from rest_framework.exceptions import NotFound, PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.models import ApiToken
from apps.accounts.scope import Scope
from apps.alerts.choices import AlertSeverity, AlertState, MuteKind
from apps.alerts.models import Alert, AlertGang, Mute
from apps.alerts.selectors import alert_gangs, alert_get, alert_list, blind_since_by_cluster, mutes_now
from apps.alerts.services.acknowledging import NOTE_LONGEST, alert_acknowledge
from apps.alerts.services.muting import MUTE_LONGEST, MuteInput, mute_create, mute_end
from apps.api.paging import CursorPages
from apps.api.views import ReadView, client_address, plain
from apps.clusters.selectors import cluster_get

ALERT_ID = OpenApiParameter("alert_id", int, OpenApiParameter.PATH)


def person_only(request: Request) -> None:
    """Refuse a token where something changes: who did it must be a person that is logged in."""
    if isinstance(request.auth, ApiToken):
        raise PermissionDenied("A token cannot do this; log in", code="login_required")


def whole_view(scope: Scope) -> None:
    """Refuse those who see single namespaces: what they would change speaks for everybody."""
    if not scope.sees_all:
        raise PermissionDenied("This takes the right to see everything", code="whole_view_needed")


class AlertSerializer(serializers.Serializer[Alert]):
    """One alert: one cause that a rule found in one cluster."""

    id = serializers.IntegerField(source="pk")
    page = serializers.SerializerMethodField(help_text="Its page for people.")
    cluster = serializers.CharField(source="cluster.name")
    rule = serializers.CharField(source="rule.key")
    state = serializers.ChoiceField(choices=AlertState.choices)
    severity = serializers.ChoiceField(choices=AlertSeverity.choices)
    signature = serializers.SerializerMethodField(help_text="VERDICT|CODE|object; gangs of one cause share it.")
    title = serializers.SerializerMethodField()
    text = serializers.SerializerMethodField()
    verdict = serializers.CharField()
    code = serializers.CharField()
    who = serializers.CharField()
    queue = serializers.CharField()
    gangs = serializers.IntegerField(source="gang_count")
    gpus = serializers.FloatField()
    since = serializers.DateTimeField(help_text="When the condition began.")
    fired_at = serializers.DateTimeField(allow_null=True)
    calm_since = serializers.DateTimeField(allow_null=True, help_text="Since when it is not found and only kept.")
    resolved_at = serializers.DateTimeField(allow_null=True)
    resolution = serializers.SerializerMethodField(help_text="What ended it.")
    is_muted = serializers.BooleanField()
    silent_since = serializers.SerializerMethodField(
        help_text="Since when its rule keeps still because the cluster is blind; null where it does not."
    )
    acknowledged_at = serializers.DateTimeField(allow_null=True)
    acknowledged_by = serializers.CharField(source="acknowledged_name")
    acknowledged_note = serializers.CharField()

    def get_page(self, alert: Alert) -> str:
        return f"{settings.GANGDASH_BASE_URL}{reverse('dashboard:alert', args=[alert.pk])}"

    def get_signature(self, alert: Alert) -> str:
        return self._veiled(alert.signature, alert)

    def get_title(self, alert: Alert) -> str:
        return self._veiled(alert.title, alert)

    def get_text(self, alert: Alert) -> str:
        return self._veiled(alert.text, alert)

    def get_resolution(self, alert: Alert) -> str:
        return self._veiled(alert.resolution, alert)

    def get_silent_since(self, alert: Alert) -> str | None:
        moment = self.context["blind"].get(alert.cluster_id)
        if moment is None or alert.state == AlertState.RESOLVED or not alert.rule.is_silent_when_blind:
            return None
        return str(serializers.DateTimeField().to_representation(moment))

    def _veiled(self, text: str, alert: Alert) -> str:
        found: str = self.context["veil"].text(text, cluster=alert.cluster.name)
        return found


class AlertGangSerializer(serializers.Serializer[AlertGang]):
    """One gang that an alert is, or was, about."""

    id = serializers.CharField(source="gang.public_id")
    namespace = serializers.CharField(source="gang.namespace")
    name = serializers.CharField(source="gang.name")
    joined_at = serializers.DateTimeField()
    left_at = serializers.DateTimeField(allow_null=True)


class AlertDetailSerializer(AlertSerializer):
    """One alert with the gangs that the asking person may see."""

    members = AlertGangSerializer(many=True)


class AlertQuery(serializers.Serializer[Any]):
    """Which alerts to list; pending ones only where they are asked for."""

    state = serializers.ChoiceField(choices=AlertState.choices, required=False)
    cluster = serializers.CharField(max_length=253, required=False)
    rule = serializers.CharField(max_length=64, required=False)
    page_size = serializers.IntegerField(min_value=1, max_value=CursorPages.max_page_size, required=False)


class AlertList(ReadView, generics.GenericAPIView[Alert]):
    """Alerts, newest first."""

    serializer_class = AlertSerializer
    pagination_class = CursorPages
    queryset = Alert.objects.none()

    @extend_schema(operation_id="alerts_list", parameters=[AlertQuery], responses=AlertSerializer(many=True))
    def get(self, request: Request) -> Response:
        query = AlertQuery(data=plain(request.query_params))
        query.is_valid(raise_exception=True)
        wanted = {name: query.validated_data.get(name, "") for name in ("state", "cluster", "rule")}
        rows: QuerySet[Any] = alert_list(scope=self.scope, **wanted).annotate(sort_key=F("since"))
        page = self.paginate_queryset(rows.order_by("-sort_key", "-pk"))
        context = {"veil": self.veil, "blind": blind_since_by_cluster()}
        shown: Any = page
        return self.get_paginated_response(AlertSerializer(shown, many=True, context=context).data)


class AlertDetail(ReadView):
    """One alert with its gangs."""

    @extend_schema(operation_id="alerts_get", parameters=[ALERT_ID], responses=AlertDetailSerializer)
    def get(self, request: Request, alert_id: int) -> Response:
        return Response(_detail(self, alert_get(scope=self.scope, alert_id=alert_id)))


def _detail(view: ReadView, alert: Alert) -> dict[str, Any]:
    context = {"veil": view.veil, "blind": blind_since_by_cluster()}
    gangs: Any = alert_gangs(scope=view.scope, alert=alert)
    return {
        **AlertSerializer(alert, context=context).data,
        "members": AlertGangSerializer(gangs, many=True).data,
    }


class AcknowledgeBody(serializers.Serializer[Any]):
    """A note that is told with it."""

    note = serializers.CharField(max_length=NOTE_LONGEST, required=False, allow_blank=True)


class AlertAcknowledge(ReadView):
    """Take care of an alert: ends the escalation, and whoever was told of it is told."""

    @extend_schema(
        operation_id="alerts_acknowledge",
        parameters=[ALERT_ID],
        request=AcknowledgeBody,
        responses=AlertDetailSerializer,
    )
    def post(self, request: Request, alert_id: int) -> Response:
        person_only(request)
        whole_view(self.scope)
        body = AcknowledgeBody(data=request.data)
        body.is_valid(raise_exception=True)
        alert = alert_acknowledge(
            alert=alert_get(scope=self.scope, alert_id=alert_id),
            actor=self.reader,
            note=body.validated_data.get("note", ""),
            now=timezone.now(),
            address=client_address(request),
        )
        return Response(_detail(self, alert))


# --- mutes -------------------------------------------------------------------------------------------------------


class MuteSerializer(serializers.Serializer[Mute]):
    """One mute."""

    id = serializers.IntegerField(source="pk", read_only=True)
    kind = serializers.ChoiceField(choices=MuteKind.choices)
    cluster = serializers.SerializerMethodField(help_text="Null means all.")
    value = serializers.CharField(help_text="A signature, namespace/name of a gang, or a queue; empty for a cluster.")
    reason = serializers.CharField()
    created_at = serializers.DateTimeField()
    created_by = serializers.CharField(source="created_name")
    ends_at = serializers.DateTimeField()

    def get_cluster(self, mute: Mute) -> str | None:
        return mute.cluster.name if mute.cluster else None


class NewMute(serializers.Serializer[Any]):
    """What to mute, why, and for how long."""

    kind = serializers.ChoiceField(choices=MuteKind.choices)
    cluster = serializers.CharField(max_length=253, required=False, allow_null=True, help_text="Left out means all.")
    value = serializers.CharField(max_length=700, required=False, allow_blank=True)
    reason = serializers.CharField(max_length=500)
    seconds = serializers.IntegerField(min_value=60, max_value=int(MUTE_LONGEST.total_seconds()))


class MutePage(serializers.Serializer[Any]):
    """The mutes that hold now, the one that ends first in front."""

    results = MuteSerializer(many=True)


class MuteList(ReadView):
    """The mutes that hold now; those who see single namespaces get none."""

    @extend_schema(operation_id="mutes_list", responses=MutePage)
    def get(self, request: Request) -> Response:
        rows = mutes_now(now=timezone.now()) if self.scope.sees_all else []
        return Response(MutePage({"results": rows}).data)

    @extend_schema(operation_id="mutes_create", request=NewMute, responses={201: MuteSerializer})
    def post(self, request: Request) -> Response:
        person_only(request)
        whole_view(self.scope)
        body = NewMute(data=request.data)
        body.is_valid(raise_exception=True)
        wanted, now = body.validated_data, timezone.now()
        name = wanted.get("cluster")
        values = MuteInput(
            kind=wanted["kind"],
            value=wanted.get("value", ""),
            cluster=cluster_get(scope=self.scope, name=name) if name else None,
            reason=wanted["reason"],
            ends_at=now + timedelta(seconds=wanted["seconds"]),
        )
        made = mute_create(values=values, actor=self.reader, now=now, address=client_address(request))
        return Response(MuteSerializer(made).data, status=201)


class MuteDetail(ReadView):
    """One mute."""

    @extend_schema(operation_id="mutes_end", responses={204: OpenApiResponse(description="Ended.")})
    def delete(self, request: Request, mute_id: int) -> Response:
        person_only(request)
        whole_view(self.scope)
        found = Mute.objects.filter(pk=mute_id).select_related("cluster").first()
        if found is None:
            raise NotFound("There is no such mute")
        mute_end(mute=found, actor=self.reader, now=timezone.now(), address=client_address(request))
        return Response(status=204)
