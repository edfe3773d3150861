"""/reasons: what each code means and who acts, from the registry that also makes the sentences."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.views import ReadView
from gangdash.engine.verdict import Verdict, Who
from gangdash.reasons import REGISTRY, Reason


class ReasonSerializer(serializers.Serializer[Reason]):
    """One code."""

    code = serializers.CharField()
    verdict = serializers.ChoiceField(choices=[(v.value, v.value) for v in Verdict])
    title = serializers.CharField()
    meaning = serializers.CharField()
    who = serializers.ChoiceField(choices=[(w.value, w.value) for w in Who])
    sentence = serializers.CharField(help_text="The main wording, with named numbers in braces.")
    evidence = serializers.ListField(child=serializers.CharField())
    never = serializers.BooleanField(help_text="A gang with this code cannot start until someone acts.")


class ReasonPage(serializers.Serializer[Any]):
    """All codes in the order of the verdicts."""

    results = ReasonSerializer(many=True)


class ReasonList(ReadView):
    """All codes."""

    @extend_schema(operation_id="reasons_list", responses=ReasonPage)
    def get(self, request: Request) -> Response:
        return Response(ReasonPage({"results": list(REGISTRY.values())}).data)


class ReasonDetail(ReadView):
    """One code."""

    @extend_schema(operation_id="reasons_get", responses=ReasonSerializer)
    def get(self, request: Request, code: str) -> Response:
        found = next((reason for known, reason in REGISTRY.items() if known.value == code), None)
        if found is None:
            raise NotFound(f"{code[:40]} is no code")
        return Response(ReasonSerializer(found).data)
