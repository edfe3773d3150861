"""Every error of the API in one shape: problem+json with type, title, status, detail and a stable code."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.core.exceptions import ObjectDoesNotExist
from django.core.exceptions import PermissionDenied as DjangoPermissionDenied
from django.http import Http404
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import set_rollback

from apps.errors import ApplicationError

CONTENT_TYPE = "application/problem+json"
STATUS_OF_CODE = {
    "base_moved": HTTPStatus.CONFLICT,
    "channel_name_taken": HTTPStatus.CONFLICT,
    "delivery_not_resendable": HTTPStatus.CONFLICT,
    "dump_expired": HTTPStatus.GONE,
    "not_to_acknowledge": HTTPStatus.CONFLICT,
    "route_name_taken": HTTPStatus.CONFLICT,
    "rule_built_in": HTTPStatus.CONFLICT,
    "not_diagnosed": HTTPStatus.NOT_FOUND,
    "report_form_unknown": HTTPStatus.NOT_FOUND,
    "report_not_made": HTTPStatus.NOT_FOUND,
    "report_not_readable": HTTPStatus.GONE,
    "schedule_name_taken": HTTPStatus.CONFLICT,
    "too_many_reports": HTTPStatus.TOO_MANY_REQUESTS,
    "secrets_locked": HTTPStatus.CONFLICT,
    "token_unknown": HTTPStatus.NOT_FOUND,
    "token_name_taken": HTTPStatus.CONFLICT,
    "too_many_uploads": HTTPStatus.TOO_MANY_REQUESTS,
    "upload_too_large": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "whole_view_needed": HTTPStatus.FORBIDDEN,
}
"""Refusals of services that are not a plain 400."""
FIELD_ERRORS = "invalid"


def problem_response(error: Exception, _context: dict[str, Any]) -> Response | None:
    """Return the answer to an error that somebody may cause; None lets a fault of ours stay one."""
    if isinstance(error, ApplicationError):
        return _respond(STATUS_OF_CODE.get(error.code, HTTPStatus.BAD_REQUEST), error.code, error.detail)
    if isinstance(error, ObjectDoesNotExist | Http404):
        error = exceptions.NotFound("There is nothing here, or nothing that you may see")
    if isinstance(error, DjangoPermissionDenied):
        error = exceptions.PermissionDenied()
    if not isinstance(error, exceptions.APIException):
        return None
    set_rollback()
    response = _respond(HTTPStatus(error.status_code), _code(error), _detail(error), fields=_fields(error))
    for name, value in _headers(error).items():
        response[name] = value
    return response


def _respond(status: HTTPStatus, code: str, detail: str, *, fields: dict[str, Any] | None = None) -> Response:
    body: dict[str, Any] = {
        "type": "about:blank",
        "title": status.phrase,
        "status": int(status),
        "detail": detail,
        "code": code,
    }
    if fields:
        body["fields"] = fields
    return Response(body, status=status, content_type=CONTENT_TYPE)


def _code(error: exceptions.APIException) -> str:
    if isinstance(error, exceptions.ValidationError):
        return FIELD_ERRORS
    codes = error.get_codes()
    return codes if isinstance(codes, str) else error.default_code


def _detail(error: exceptions.APIException) -> str:
    if isinstance(error, exceptions.ValidationError):
        names = ", ".join(sorted(_fields(error) or {}))
        return f"Not valid: {names}" if names else "Not valid"
    return str(error.detail)


def _fields(error: exceptions.APIException) -> dict[str, Any] | None:
    """Return what is wrong per field of a request that is not valid."""
    if not isinstance(error, exceptions.ValidationError):
        return None
    return error.detail if isinstance(error.detail, dict) else {"request": error.detail}


def _headers(error: exceptions.APIException) -> dict[str, str]:
    headers = {}
    if header := getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = header
    if (wait := getattr(error, "wait", None)) is not None:
        headers["Retry-After"] = f"{wait:.0f}"
    return headers
