"""Cursor pages: stable while rows come and go, and no page counts the whole list."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from rest_framework.exceptions import NotFound
from rest_framework.pagination import Cursor, CursorPagination
from rest_framework.request import Request
from rest_framework.views import APIView


class CursorPages(CursorPagination):
    """Pages in an order that the view has annotated to be never null."""

    page_size = 100
    page_size_query_param = "page_size"
    max_page_size = 500
    # Rows that share one value are paged through by offset, however many they are.
    offset_cutoff = None  # type: ignore[assignment]

    def paginate_queryset(self, queryset: Any, request: Request, view: APIView | None = None) -> Any:
        """Return one page; a cursor whose value does not belong to the order is no cursor."""
        try:
            return super().paginate_queryset(queryset, request, view)
        except (ValueError, ValidationError) as error:
            raise NotFound(self.invalid_cursor_message) from error

    def decode_cursor(self, request: Request) -> Cursor | None:
        """Refuse a value that no row can have and PostgreSQL refuses to compare with."""
        cursor = super().decode_cursor(request)
        if cursor is not None and "\x00" in str(cursor.position):
            raise NotFound(self.invalid_cursor_message)
        return cursor

    def get_ordering(self, request: Request, queryset: QuerySet[Any], view: APIView) -> tuple[str, ...]:
        """Keep the order of the query: the view has chosen it."""
        return tuple(str(name) for name in queryset.query.order_by)
