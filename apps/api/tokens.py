"""/tokens: the keys of the person who asks. Only a login session may make or end them."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.choices import TokenScope
from apps.accounts.models import ApiToken
from apps.accounts.selectors import token_list
from apps.accounts.services import token_create, token_revoke
from apps.api.views import PrivateView, client_address


class TokenSerializer(serializers.Serializer[ApiToken]):
    """One token without its text."""

    id = serializers.IntegerField(source="pk", read_only=True)
    name = serializers.CharField(max_length=64)
    prefix = serializers.CharField(read_only=True)
    scopes = serializers.MultipleChoiceField(choices=TokenScope.choices, default={TokenScope.READ.value})
    created_at = serializers.DateTimeField(read_only=True)
    last_used_at = serializers.DateTimeField(read_only=True, allow_null=True)
    expires_at = serializers.DateTimeField(required=False, allow_null=True)


class NewTokenSerializer(TokenSerializer):
    """A new token with its text, shown this once."""

    text = serializers.CharField(read_only=True)


class TokenPage(serializers.Serializer[Any]):
    """All usable tokens of one person."""

    results = TokenSerializer(many=True)


class TokenList(PrivateView):
    """The tokens of the person who asks."""

    @extend_schema(operation_id="tokens_list", responses=TokenPage)
    def get(self, request: Request) -> Response:
        return Response(TokenPage({"results": token_list(user=self.reader)}).data)

    @extend_schema(operation_id="tokens_create", request=TokenSerializer, responses={201: NewTokenSerializer})
    def post(self, request: Request) -> Response:
        wanted = TokenSerializer(data=request.data)
        wanted.is_valid(raise_exception=True)
        new = token_create(
            user=self.reader,
            name=wanted.validated_data["name"],
            scopes=[TokenScope(scope) for scope in wanted.validated_data["scopes"]],
            expires_at=wanted.validated_data.get("expires_at"),
            address=client_address(request),
        )
        return Response({**TokenSerializer(new.token).data, "text": new.text}, status=201)


class TokenDetail(PrivateView):
    """One token of the person who asks."""

    @extend_schema(operation_id="tokens_revoke", responses={204: OpenApiResponse(description="Revoked.")})
    def delete(self, request: Request, token_id: int) -> Response:
        token_revoke(user=self.reader, token_id=token_id, address=client_address(request))
        return Response(status=204)
