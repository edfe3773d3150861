"""/reports: health reports, asking for one, and its files.

A report names gangs of every namespace, so it takes the right to see all of them.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
from django.conf import settings
from django.db.models import F
from django.http import HttpResponse
from django.urls import reverse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_field
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.choices import TokenScope
from apps.api.paging import CursorPages
from apps.api.views import ReadView, client_address, plain
from apps.clusters.selectors import cluster_get
from apps.errors import ApplicationError
from apps.reports.choices import ReportForm, ReportState
from apps.reports.models import Report
from apps.reports.ranges import parse_range
from apps.reports.renderers import CONTENT_TYPES, file_name, render
from apps.reports.renderers.prepare import prepared
from apps.reports.scheduling import zone_names
from apps.reports.selectors import report_content, report_get, report_list
from apps.reports.services import report_request

REPORT_SCHEMA = {"$ref": "#/components/schemas/ReportContent"}
"""The schema of what a report says; made from its own types in ``apps.api.schema``."""


class ReportSerializer(serializers.Serializer[Report]):
    """One report without what it says."""

    id = serializers.IntegerField(source="pk")
    cluster = serializers.CharField(source="cluster.name")
    title = serializers.CharField()
    schedule = serializers.CharField(source="schedule.name", allow_null=True, default=None)
    requested_by = serializers.CharField(source="requested_by.username", allow_null=True, default=None)
    start = serializers.DateTimeField()
    end = serializers.DateTimeField()
    zone = serializers.CharField()
    state = serializers.ChoiceField(choices=ReportState.choices)
    due_at = serializers.DateTimeField(allow_null=True, help_text="When its schedule was due; null for one asked for.")
    missed = serializers.IntegerField(help_text="Earlier moments of the schedule that passed without a report.")
    created_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)
    detail = serializers.CharField(help_text="Why it is not made, where it failed.")
    headline = serializers.CharField()
    previous = serializers.IntegerField(
        source="previous_id", allow_null=True, help_text="The report that its changes are against."
    )


class ReportDetailSerializer(ReportSerializer):
    """One report with what it says; ``content`` is null until it is made."""

    content = serializers.SerializerMethodField()

    @extend_schema_field({"oneOf": [REPORT_SCHEMA, {"type": "null"}]})
    def get_content(self, report: Report) -> Any:
        if report.state != ReportState.DONE:
            return None
        content = prepared(report_content(report), base_url=settings.GANGDASH_BASE_URL or None)
        return msgspec.to_builtins(content)


class ReportQuery(serializers.Serializer[Any]):
    """The filters of the list."""

    cluster = serializers.CharField(max_length=253, required=False)
    schedule = serializers.CharField(
        max_length=100, required=False, help_text="The name of a schedule, or - for reports that somebody asked for."
    )
    state = serializers.ChoiceField(choices=ReportState.choices, required=False)
    page_size = serializers.IntegerField(min_value=1, max_value=CursorPages.max_page_size, required=False)


class ReportWish(serializers.Serializer[Any]):
    """The report that is wanted."""

    cluster = serializers.CharField(max_length=253)
    range = serializers.CharField(max_length=80, default="24h", help_text="24h, 7d, or FROM/TO with time zones.")
    zone = serializers.CharField(max_length=64, default="UTC", help_text="The time zone that moments are written in.")

    def validate_zone(self, value: str) -> str:
        if value not in zone_names():
            raise serializers.ValidationError("Write a time zone by its name, like UTC or Europe/Berlin")
        return value


class ReportList(ReadView, generics.GenericAPIView[Report]):
    """The reports, newest end first; none for those who see only some namespaces."""

    token_scope: ClassVar[TokenScope | None] = TokenScope.DIAGNOSE
    serializer_class = ReportSerializer
    pagination_class = CursorPages
    queryset = Report.objects.none()

    @extend_schema(operation_id="reports_list", parameters=[ReportQuery], responses=ReportSerializer(many=True))
    def get(self, request: Request) -> Response:
        query = ReportQuery(data=plain(request.query_params))
        query.is_valid(raise_exception=True)
        wanted = {name: query.validated_data.get(name, "") for name in ("cluster", "schedule", "state")}
        rows = report_list(scope=self.scope, **wanted).annotate(sort_key=F("end"))
        page = self.paginate_queryset(rows.order_by("-sort_key", "-pk"))
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    @extend_schema(operation_id="reports_create", request=ReportWish, responses={202: ReportSerializer})
    def post(self, request: Request) -> Response:
        wish = ReportWish(data=request.data)
        wish.is_valid(raise_exception=True)
        if not self.scope.sees_all:
            raise ApplicationError("whole_view_needed", "A report takes the right to see all of a cluster")
        report = report_request(
            user=self.reader,
            cluster=cluster_get(scope=self.scope, name=wish.validated_data["cluster"]),
            covered=parse_range(wish.validated_data["range"], now=timezone.now()),
            zone=wish.validated_data["zone"],
            address=client_address(request),
        )
        report.refresh_from_db()
        address = reverse("api:report", kwargs={"report_id": report.pk})
        return Response(ReportSerializer(report).data, status=202, headers={"Location": address})


class ReportDetail(ReadView):
    """One report; ask again while its state is waiting."""

    @extend_schema(operation_id="reports_get", responses=ReportDetailSerializer)
    def get(self, request: Request, report_id: int) -> Response:
        return Response(ReportDetailSerializer(report_get(scope=self.scope, report_id=report_id)).data)


class ReportFile(ReadView):
    """A report as a file."""

    @extend_schema(
        operation_id="reports_file",
        responses={
            (200, "text/html"): OpenApiTypes.STR,
            (200, "text/markdown"): OpenApiTypes.STR,
            (200, "application/json"): OpenApiResponse(REPORT_SCHEMA),
            (200, "text/csv"): OpenApiTypes.STR,
        },
    )
    def get(self, request: Request, report_id: int, form: str) -> HttpResponse:
        if form not in ReportForm.values:
            raise ApplicationError("report_form_unknown", f"A report comes as {', '.join(ReportForm.values)}")
        content = report_content(report_get(scope=self.scope, report_id=report_id))
        wanted = ReportForm(form)
        base_url = settings.GANGDASH_BASE_URL or request.build_absolute_uri("/").rstrip("/")
        headers = {"Content-Disposition": f'attachment; filename="{file_name(content, wanted)}"'}
        return HttpResponse(
            render(content, wanted, base_url=base_url), content_type=CONTENT_TYPES[wanted], headers=headers
        )
