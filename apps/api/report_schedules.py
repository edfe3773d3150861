"""/report-schedules: when reports come by themselves and where they go.

They decide which names leave the house, so only an admin who is logged in changes them.
"""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.models import ApiToken, User
from apps.api.auth import reader_of
from apps.api.views import ReadView, client_address
from apps.clusters.models import Cluster
from apps.delivery.models import Channel
from apps.reports.choices import Coverage, Frequency, ReportForm, Weekday
from apps.reports.models import ReportSchedule
from apps.reports.schedule import next_due
from apps.reports.scheduling import ScheduleValues, schedule_delete, schedule_save
from apps.reports.selectors import schedule_get, schedule_list


class NameField(serializers.SlugRelatedField[Any]):
    """A row by its name; one that no row can have is not looked for, as PostgreSQL refuses to."""

    def __init__(self, **options: Any) -> None:
        super().__init__(slug_field="name", **options)

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str) or "\x00" in data:
            self.fail("does_not_exist", slug_name="name", value=str(data).replace("\x00", ""))
        return super().to_internal_value(data)


class ScheduleSerializer(serializers.Serializer[ReportSchedule]):
    """When reports come, of what, and where they go."""

    id = serializers.IntegerField(source="pk", read_only=True)
    name = serializers.CharField(max_length=100)
    clusters = NameField(
        queryset=Cluster.objects.all(),
        many=True,
        required=False,
        help_text="Names; none means every cluster that is read.",
    )
    frequency = serializers.ChoiceField(choices=Frequency.choices, default=Frequency.DAILY.value)
    weekday = serializers.ChoiceField(
        choices=Weekday.choices, default=Weekday.MONDAY.value, help_text="0 is Monday; counts for weekly ones."
    )
    at = serializers.TimeField(format="%H:%M", help_text="On the clocks of the zone.")
    zone = serializers.CharField(max_length=64, default="UTC")
    coverage_hours = serializers.ChoiceField(
        choices=Coverage.choices, default=Coverage.SINCE_LAST.value, help_text="0 is since the one before is due."
    )
    channels = NameField(
        queryset=Channel.objects.all(),
        many=True,
        required=False,
        help_text="Names of the channels that are told of each report.",
    )
    attached = serializers.ListField(
        child=serializers.ChoiceField(choices=ReportForm.choices), required=False, help_text="Files of an e-mail."
    )
    is_enabled = serializers.BooleanField(default=True)
    next_due = serializers.SerializerMethodField()

    @extend_schema_field({"type": ["string", "null"], "format": "date-time"})
    def get_next_due(self, schedule: ReportSchedule) -> Any:
        due = next_due(schedule.plan, after=timezone.now()) if schedule.is_enabled else None
        return serializers.DateTimeField().to_representation(due) if due else None


class SchedulePage(serializers.Serializer[Any]):
    """All schedules."""

    results = ScheduleSerializer(many=True)


class ScheduleList(ReadView):
    """The schedules, by name; none for those who see only some namespaces."""

    @extend_schema(operation_id="report_schedules_list", responses=SchedulePage)
    def get(self, request: Request) -> Response:
        return Response(SchedulePage({"results": schedule_list(scope=self.scope)}).data)

    @extend_schema(
        operation_id="report_schedules_create", request=ScheduleSerializer, responses={201: ScheduleSerializer}
    )
    def post(self, request: Request) -> Response:
        actor = admin_of(request)
        row = schedule_save(values=_values(request), actor=actor, now=timezone.now(), address=client_address(request))
        return Response(ScheduleSerializer(row).data, status=201)


class ScheduleDetail(ReadView):
    """One schedule."""

    @extend_schema(operation_id="report_schedules_get", responses=ScheduleSerializer)
    def get(self, request: Request, schedule_id: int) -> Response:
        return Response(ScheduleSerializer(schedule_get(scope=self.scope, schedule_id=schedule_id)).data)

    @extend_schema(operation_id="report_schedules_change", request=ScheduleSerializer, responses=ScheduleSerializer)
    def put(self, request: Request, schedule_id: int) -> Response:
        actor = admin_of(request)
        schedule = schedule_get(scope=self.scope, schedule_id=schedule_id)
        schedule_save(
            values=_values(request),
            actor=actor,
            now=timezone.now(),
            schedule=schedule,
            address=client_address(request),
        )
        return Response(ScheduleSerializer(schedule_get(scope=self.scope, schedule_id=schedule_id)).data)

    @extend_schema(operation_id="report_schedules_delete", responses={204: OpenApiResponse(description="Removed.")})
    def delete(self, request: Request, schedule_id: int) -> Response:
        actor = admin_of(request)
        schedule = schedule_get(scope=self.scope, schedule_id=schedule_id)
        schedule_delete(schedule=schedule, actor=actor, address=client_address(request))
        return Response(status=204)


def admin_of(request: Request) -> User:
    """Return the admin who asks in person; anybody else is refused."""
    if isinstance(request.auth, ApiToken):
        raise PermissionDenied("A token cannot do this; log in", code="login_required")
    user = reader_of(request)
    if not user.is_admin:
        raise PermissionDenied("Schedules are for admins")
    return user


def _values(request: Request) -> ScheduleValues:
    wish = ScheduleSerializer(data=request.data)
    wish.is_valid(raise_exception=True)
    return ScheduleValues.of(wish.validated_data)
