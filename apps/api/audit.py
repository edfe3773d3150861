"""/audit: what people and tokens did, for admins who are logged in themselves."""

from __future__ import annotations

from django.db.models import F
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.models import AuditEntry
from apps.accounts.selectors import audit_list
from apps.api.paging import CursorPages
from apps.api.views import PrivateView, plain


class AuditSerializer(serializers.Serializer[AuditEntry]):
    """One thing that was done."""

    at = serializers.DateTimeField()
    actor = serializers.CharField(source="actor_name")
    action = serializers.CharField()
    target = serializers.CharField()
    details = serializers.JSONField()
    address = serializers.IPAddressField(allow_null=True)


class AuditQuery(serializers.Serializer[AuditEntry]):
    """Which actions to list."""

    action = serializers.CharField(max_length=64, required=False, help_text="Like token.create or login.failed.")
    page_size = serializers.IntegerField(min_value=1, max_value=CursorPages.max_page_size, required=False)


class AuditList(PrivateView, generics.GenericAPIView[AuditEntry]):
    """The audit record, newest first."""

    serializer_class = AuditSerializer
    pagination_class = CursorPages
    queryset = AuditEntry.objects.none()

    @extend_schema(operation_id="audit_list", parameters=[AuditQuery], responses=AuditSerializer(many=True))
    def get(self, request: Request) -> Response:
        if not self.reader.is_admin:
            raise PermissionDenied("The audit record is for admins")
        query = AuditQuery(data=plain(request.query_params))
        query.is_valid(raise_exception=True)
        rows = audit_list(action=query.validated_data.get("action", "")).annotate(sort_key=F("at"))
        page = self.paginate_queryset(rows.order_by("-sort_key", "-pk"))
        return self.get_paginated_response(self.get_serializer(page, many=True).data)
