"""/checks: what an admin would check by hand, as the newest poll found it."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.views import ReadView, plain
from apps.checks.choices import CheckSeverity, CheckState
from apps.checks.selectors import Checked, check_rows


class CheckSerializer(serializers.Serializer[Checked]):
    """One check of one cluster."""

    cluster = serializers.CharField(source="row.cluster.name")
    id = serializers.CharField(source="check.id")
    title = serializers.CharField(source="check.title")
    severity = serializers.ChoiceField(source="row.severity", choices=CheckSeverity.choices)
    state = serializers.ChoiceField(source="row.state", choices=CheckState.choices)
    evidence = serializers.CharField(source="row.evidence")
    objects = serializers.ListField(source="row.objects_found", child=serializers.CharField())
    remedy = serializers.CharField(source="check.remedy", help_text="What to do where it fails.")
    since = serializers.DateTimeField(source="row.since")
    checked_at = serializers.DateTimeField(source="row.checked_at")


class CheckPage(serializers.Serializer[Any]):
    """Every check, what fails first."""

    results = CheckSerializer(many=True)


class CheckQuery(serializers.Serializer[Any]):
    """The filters of the list."""

    cluster = serializers.CharField(max_length=253, required=False)
    state = serializers.ChoiceField(choices=CheckState.choices, required=False)


class CheckList(ReadView):
    """The checks of every cluster, for those who see all of it; others get none."""

    @extend_schema(operation_id="checks_list", parameters=[CheckQuery], responses=CheckPage)
    def get(self, request: Request) -> Response:
        query = CheckQuery(data=plain(request.query_params))
        query.is_valid(raise_exception=True)
        wanted = {name: query.validated_data.get(name, "") for name in ("cluster", "state")}
        return Response(CheckPage({"results": check_rows(scope=self.scope, **wanted)}).data)
