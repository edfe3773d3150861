"""/whatif: what changes would do to every gang of a cluster; answered at once, nothing is stored or changed."""

from __future__ import annotations

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.choices import TokenScope
from apps.api.auth import scope_for
from apps.api.views import PrivateView
from apps.clusters.selectors import cluster_get
from apps.diagnosis.services.whatif import CHANGES_MAX, Told, whatif_run
from gangdash.engine.changes import Change, ChangeError, change_from_text, changes_from_mapping

ANSWER = {"$ref": "#/components/schemas/WhatIf"}
CHANGE = {
    "oneOf": [
        {"type": "string", "description": "KIND:OBJECT[:KEY=VALUE,...], as the command line takes it."},
        {
            "type": "object",
            "description": "The change of a fix: its kind, object and values.",
            "required": ["kind"],
            "properties": {"kind": {"type": "string"}, "object": {"type": "string"}},
            "additionalProperties": True,
        },
    ]
}


@extend_schema_field(CHANGE)
class ChangeField(serializers.Field[list[Change], Any, Any, Any]):
    """One change, as text or as the object that a fix carries."""

    def to_internal_value(self, data: Any) -> list[Change]:
        try:
            if isinstance(data, str):
                return [change_from_text(data)]
            if isinstance(data, dict):
                return changes_from_mapping(data)
        except ChangeError as error:
            raise serializers.ValidationError(str(error)) from error
        raise serializers.ValidationError("Send a text or an object")

    def to_representation(self, value: Any) -> Any:
        return value


class WhatIfRequest(serializers.Serializer[Any]):
    """Which changes, on which moment of which cluster."""

    cluster = serializers.CharField(max_length=253)
    changes = serializers.ListField(child=ChangeField(), min_length=1, max_length=CHANGES_MAX)
    base = serializers.CharField(
        max_length=80, required=False, help_text="The digest of an analysed moment; the newest one without."
    )
    check_digest = serializers.CharField(
        max_length=80, required=False, help_text="Refuse with 409 where the newest moment has another digest."
    )


class WhatIfAnswer(serializers.Serializer[Told]):
    """The difference of two whole cycles; ``base_is_newest`` says whether the moment is still the newest analysed."""

    cluster = serializers.CharField(source="snapshot.cluster.name")
    base_is_newest = serializers.BooleanField(source="is_newest")
    answer = serializers.SerializerMethodField()

    @extend_schema_field(ANSWER)
    def get_answer(self, told: Told) -> Any:
        return told.document


class WhatIfView(PrivateView):
    """Runs the cycle with and without changes and tells the difference for every gang."""

    token_scope: ClassVar[TokenScope | None] = TokenScope.READ
    throttle_scope = "whatif"

    @extend_schema(operation_id="whatif_create", request=WhatIfRequest, responses=WhatIfAnswer)
    def post(self, request: Request) -> Response:
        asked = WhatIfRequest(data=request.data)
        asked.is_valid(raise_exception=True)
        values = asked.validated_data
        scope = scope_for(request)
        told = whatif_run(
            cluster=cluster_get(scope=scope, name=values["cluster"]),
            scope=scope,
            changes=[change for several in values["changes"] for change in several],
            base=values.get("base", ""),
            expected=values.get("check_digest", ""),
        )
        return Response(WhatIfAnswer(told).data)
