"""Who asks: a bearer token or a login session, and what either may do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from apps.accounts.choices import TokenScope
from apps.accounts.models import ApiToken, User
from apps.accounts.scope import Scope, scope_of
from apps.accounts.services import token_authenticate

if TYPE_CHECKING:
    # The framework imports this module while it imports its views.
    from rest_framework.views import APIView

SCHEME = "Bearer"


class BearerAuthentication(BaseAuthentication):
    """``Authorization: Bearer gd_...``; any other scheme is left to the session."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        parts = get_authorization_header(request).split()
        if not parts or parts[0].lower() != SCHEME.lower().encode():
            return None
        text = parts[1].decode("latin-1") if len(parts) == 2 else ""
        token = token_authenticate(text=text)
        if token is None:
            raise AuthenticationFailed("This token is unknown, expired or revoked", code="token_not_valid")
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return SCHEME


class IsAllowed(BasePermission):
    """A logged-in person whose password is their own, or a token with the scope that the view names.

    A view without ``token_scope`` is closed to tokens: what manages access asks for the person.
    """

    def has_permission(self, request: Request, view: APIView) -> bool:
        user, token = request.user, request.auth
        if not isinstance(user, User):
            return False
        if isinstance(token, ApiToken):
            return self._token_may(token, request, view)
        if user.must_change_password:
            raise PermissionDenied("Change your one-time password first", code="password_change_required")
        return True

    def _token_may(self, token: ApiToken, request: Request, view: APIView) -> bool:
        wanted: TokenScope | None = getattr(view, "token_scope", None)
        if wanted is None:
            raise PermissionDenied("A token cannot do this; log in", code="login_required")
        if request.method in SAFE_METHODS:
            wanted = TokenScope.READ
        if wanted not in token.scopes:
            raise PermissionDenied(f"This token lacks the scope {wanted}", code="token_scope_missing")
        return True


def reader_of(request: Request) -> User:
    """Return the user that the permission check let in."""
    user = request.user
    assert isinstance(user, User)
    return user


def scope_for(request: Request) -> Scope:
    """Return what the asking person may see."""
    return scope_of(reader_of(request))
