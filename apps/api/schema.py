"""What the generated OpenAPI document cannot know by itself: the documents' own types and the errors of each route.

The contract's schemas come from the types that also make the documents; errors are added once for all routes.
"""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.renderers import OpenApiJsonRenderer2, OpenApiYamlRenderer
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from apps.reports.renderers.document import report_schema
from gangdash.documents.schema import json_schema, what_if_schema

PROBLEM = {
    "type": "object",
    "description": "Any error, RFC 9457. Programs go by code.",
    "required": ["type", "title", "status", "detail", "code"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string"},
        "fields": {"type": "object", "description": "What is wrong, per field.", "additionalProperties": True},
    },
}
ERRORS = {
    "400": "The request is not valid.",
    "401": "No login and no token, or one that does not count.",
    "403": "Not allowed.",
    "404": "Not there, or not visible.",
    "406": "The answer does not come in that format.",
    "429": "Too many requests; Retry-After says when to come again.",
}
UNREAD = {"415": "The body comes in a form that is not read."}
FURTHER_ERRORS = {
    "gangs_snapshot": {"410": "The objects of this moment are not kept any more."},
    "channels_create": {"409": "The name is taken.", "415": "The body comes in a form that is not read."},
    "channels_update": {"409": "The name is taken.", "415": "The body comes in a form that is not read."},
    "deliveries_resend": {"409": "It is being sent, or a digest carried it."},
    "diagnose_create": {"413": "The file is too large.", "415": "The body comes in a form that is not read."},
    "reports_create": {"415": "The body comes in a form that is not read."},
    "reports_get": {"410": "Another version wrote this report."},
    "reports_file": {"410": "Another version wrote this report."},
    "report_schedules_create": {"409": "The name is taken.", "415": "The body comes in a form that is not read."},
    "report_schedules_change": {"409": "The name is taken.", "415": "The body comes in a form that is not read."},
    "whatif_create": {
        "409": "The newest analysis is another one than expected.",
        "410": "The objects of this moment are not kept any more.",
        "415": "The body comes in a form that is not read.",
    },
    "alert_backtest_create": UNREAD,
    "alert_rules_create": UNREAD,
    "alert_rules_change": UNREAD,
    "mutes_create": UNREAD,
    "alerts_acknowledge": {"409": "It does not fire, or someone has acknowledged it.", **UNREAD},
    "alert_rules_delete": {"409": "A rule of the list can be switched off, not deleted."},
    "alert_routes_create": {"409": "The name is taken.", **UNREAD},
    "alert_routes_change": {"409": "The name is taken.", **UNREAD},
    "tokens_create": {"409": "The name is taken.", "415": "The body comes in a form that is not read."},
}


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """Describes bearer tokens in the schema."""

    target_class = "apps.api.auth.BearerAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer"}


class SchemaView(SpectacularAPIView):
    """The OpenAPI document; for whoever may log in."""

    renderer_classes = [OpenApiJsonRenderer2, OpenApiYamlRenderer]  # noqa: RUF012 - the base class's own type

    @extend_schema(exclude=True)
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        response: Response = super().get(request, *args, **kwargs)  # type: ignore[no-untyped-call]
        return response


def describe_documents_and_errors(result: dict[str, Any], **_generator: Any) -> dict[str, Any]:
    """Add the contract's types and each route's errors to the generated document."""
    schemas: dict[str, Any] = result.setdefault("components", {}).setdefault("schemas", {})
    schemas["Problem"] = PROBLEM
    schemas |= _contract_schemas() | _report_schemas()
    result["components"]["schemas"] = dict(sorted(schemas.items()))
    for path in result["paths"].values():
        for operation in path.values():
            errors = ERRORS | FURTHER_ERRORS.get(operation["operationId"], {})
            for status, meaning in errors.items():
                operation["responses"].setdefault(status, _problem(meaning))
    return result


def _problem(meaning: str) -> dict[str, Any]:
    return {
        "description": meaning,
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }


def _contract_schemas() -> dict[str, Any]:
    """Return the types of both documents, and of what changes do, under their own names."""
    found: dict[str, Any] = _moved(json_schema())["$defs"]
    more: dict[str, Any] = _moved(what_if_schema())["$defs"]
    return found | more


def _report_schemas() -> dict[str, Any]:
    """Return the types of a report's content, each with a prefix, as some of their names are common words."""
    found: dict[str, Any] = _moved(report_schema(), prefix="Report")["$defs"]
    return {f"Report{name}": definition for name, definition in found.items()}


def _moved(value: Any, *, prefix: str = "") -> Any:
    """Return the schema with references that point where OpenAPI keeps its schemas."""
    if isinstance(value, dict):
        return {key: _moved(item, prefix=prefix) for key, item in value.items()}
    if isinstance(value, list):
        return [_moved(item, prefix=prefix) for item in value]
    return value.replace("#/$defs/", f"#/components/schemas/{prefix}") if isinstance(value, str) else value
