"""What every view shares: only the verbs it has, answers that can be asked for again cheaply."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any, ClassVar

from django.http import QueryDict
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django.views.decorators.http import conditional_page
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.accounts.choices import TokenScope
from apps.accounts.models import User
from apps.accounts.scope import Scope
from apps.api.auth import reader_of, scope_for
from apps.workloads.veil import Veil, veil_for


@method_decorator(conditional_page, name="dispatch")
class ReadView(APIView):
    """A read: carries an ETag, answers 304 to one that still holds. Tokens need the scope to read."""

    token_scope: ClassVar[TokenScope | None] = TokenScope.READ

    @property
    def scope(self) -> Scope:
        """What the asking person may see; one query at most, kept for the request."""
        if not hasattr(self, "_scope"):
            self._scope = scope_for(self.request)
        return self._scope

    @property
    def veil(self) -> Veil:
        """What hides from the asking person; kept for the request."""
        if not hasattr(self, "_veil"):
            self._veil = veil_for(scope=self.scope)
        return self._veil

    @property
    def reader(self) -> User:
        return reader_of(self.request)


@method_decorator(never_cache, name="dispatch")
class PrivateView(APIView):
    """What only the person gets, like tokens: not kept anywhere on the way."""

    token_scope: ClassVar[TokenScope | None] = None

    @property
    def reader(self) -> User:
        return reader_of(self.request)


class NothingHere(PrivateView):
    """Any other address: also not being there is told in the API's own shape."""

    @extend_schema(exclude=True)
    def get(self, request: Request) -> Response:
        raise NotFound

    post = put = patch = delete = get


def plain(parameters: QueryDict, *, several: Collection[str] = ()) -> dict[str, Any]:
    """Return query parameters as plain data, so that an empty one is checked and not taken as left out."""
    return {name: parameters.getlist(name) if name in several else parameters[name] for name in parameters}


def client_address(request: Request) -> str | None:
    """Return the peer's address as the web server saw it."""
    address: Any = request.META.get("REMOTE_ADDR")
    return address or None


class MomentQuery(serializers.Serializer[Any]):
    """What is asked for: how it is now or, where a moment is named, how it was then."""

    at = serializers.DateTimeField(required=False, help_text="A moment in the past.")


def moment_of(request: Request) -> datetime | None:
    """Return the moment that a request names, None where it asks for now."""
    query = MomentQuery(data=plain(request.query_params))
    query.is_valid(raise_exception=True)
    at: datetime | None = query.validated_data.get("at")
    return at
