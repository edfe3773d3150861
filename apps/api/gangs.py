"""/gangs: the list that waits, one gang, what is said of it, since when, and the moment it was said about."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar

from django.conf import settings
from django.db.models import F, QuerySet, Value
from django.db.models.functions import Coalesce
from django.http import HttpResponse
from django.urls import reverse
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema, extend_schema_view
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.services import audit_record
from apps.api.paging import CursorPages
from apps.api.views import MomentQuery, ReadView, client_address, moment_of, plain
from apps.clusters.choices import Freshness
from apps.clusters.selectors import freshness_state
from apps.diagnosis.models import ExplanationRecord, ReasonTimeline
from apps.diagnosis.selectors import (
    attempt_diagnosed_list,
    document_text,
    explanation_at,
    explanation_get,
    gang_list_at,
    gang_then,
    timeline_list,
)
from apps.diagnosis.services.downloads import dump_name, snapshot_dump
from apps.errors import ApplicationError
from apps.workloads.choices import GangState
from apps.workloads.models import Attempt, Gang, Pod
from apps.workloads.selectors import ORDERINGS, GangFilter, gang_get, gang_list, pod_list
from apps.workloads.veil import Veil
from gangdash.engine.verdict import ReasonCode, Verdict, Who

# What stands in for a missing value, so that it comes last in either direction.
_LAST_ASCENDING: dict[str, Any] = {
    **dict.fromkeys(("waiting_since", "created_at"), datetime(9999, 1, 1, tzinfo=UTC)),
    **dict.fromkeys(("gpus", "gpus_waiting"), 1e18),
}
_LAST_DESCENDING: dict[str, Any] = {
    **dict.fromkeys(("waiting_since", "created_at"), datetime(1970, 1, 1, tzinfo=UTC)),
    **dict.fromkeys(("gpus", "gpus_waiting"), -1.0),
}
ID = OpenApiParameter("gang_id", str, OpenApiParameter.PATH, description="cluster~uid, as lists give it")


# What a list of a past moment is sorted by instead: what is known of now is not true of then.
_THEN = {"waiting_since": "then_opened_at", "gpus_waiting": "then_gpus", "verdict": "then_verdict"}
_OLD = frozenset({Freshness.STALE, Freshness.BLIND, Freshness.REMOVED})
_NOT_FILTERS = frozenset({"ordering", "page_size", "at"})


class GangSerializer(serializers.Serializer[Gang]):
    """One gang in a list. Numbers of pods are null where pods could not be read."""

    id = serializers.CharField(source="public_id")
    page = serializers.SerializerMethodField(help_text="Its page for people; absolute where the server knows its name.")
    cluster = serializers.CharField(source="cluster.name")
    namespace = serializers.CharField()
    name = serializers.CharField()
    kind = serializers.CharField()
    uid = serializers.CharField()
    owner = serializers.CharField()
    queue = serializers.CharField()
    shard = serializers.CharField()
    priority_class = serializers.CharField()
    min_member = serializers.IntegerField(allow_null=True)
    pods_total = serializers.IntegerField(allow_null=True)
    pods_placed = serializers.IntegerField(allow_null=True)
    pods_waiting = serializers.IntegerField(allow_null=True)
    gpus = serializers.FloatField(allow_null=True)
    gpus_waiting = serializers.FloatField(allow_null=True)
    state = serializers.ChoiceField(choices=GangState.choices)
    verdict = serializers.CharField(help_text="Empty before the first diagnosis.")
    code = serializers.CharField()
    who = serializers.CharField()
    certainty = serializers.SerializerMethodField(help_text="`stale` where the cluster was not read for three polls.")
    sentence = serializers.SerializerMethodField()
    subject = serializers.SerializerMethodField(help_text="The object that the first binding constraint was read from.")
    stage = serializers.CharField()
    waiting_since = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField(allow_null=True)
    first_seen_at = serializers.DateTimeField()
    gone_at = serializers.DateTimeField(allow_null=True)
    read_as_of = serializers.DateTimeField(source="cluster.read_as_of", allow_null=True)
    diagnosed_as_of = serializers.DateTimeField(allow_null=True)

    def get_page(self, gang: Gang) -> str:
        names = {"cluster": gang.cluster.name, "namespace": gang.namespace, "name": gang.name}
        return f"{settings.GANGDASH_BASE_URL}{reverse('dashboard:gang', kwargs=names)}"

    def get_certainty(self, gang: Gang) -> str:
        is_old = freshness_state(cluster=gang.cluster, now=timezone.now()) in _OLD
        return "stale" if gang.certainty and is_old else gang.certainty

    def get_sentence(self, gang: Gang) -> str:
        return self._veiled(gang.sentence, gang)

    def get_subject(self, gang: Gang) -> str:
        return self._veiled(gang.subject, gang)

    def _veiled(self, text: str, gang: Gang) -> str:
        veil: Veil = self.context["veil"]
        return veil.text(text, cluster=gang.cluster.name)


class PodSerializer(serializers.Serializer[Pod]):
    """One pod of a gang."""

    name = serializers.CharField()
    uid = serializers.CharField()
    sub_group = serializers.CharField()
    phase = serializers.CharField()
    node = serializers.CharField()
    gpus = serializers.FloatField()
    is_gated = serializers.BooleanField()
    is_terminating = serializers.BooleanField()
    reason = serializers.CharField()
    restarts = serializers.IntegerField()


class GangDetailSerializer(GangSerializer):
    """One gang with what it asks for and its pods."""

    preemptibility = serializers.CharField()
    topology = serializers.CharField()
    required_level = serializers.CharField()
    preferred_level = serializers.CharField()
    last_ran_at = serializers.DateTimeField(allow_null=True)
    pods = serializers.SerializerMethodField()

    @extend_schema(responses=PodSerializer(many=True, allow_null=True))
    def get_pods(self, gang: Gang) -> list[dict[str, Any]] | None:
        """Return the pods of now; None for a moment in the past, of which they are not kept."""
        if self.context["is_past"]:
            return None
        return [dict(PodSerializer(pod).data) for pod in pod_list(gang=gang)]


class TimelineSerializer(serializers.Serializer[ReasonTimeline]):
    """One stretch of time with one verdict and code."""

    verdict = serializers.CharField()
    code = serializers.CharField()
    who = serializers.CharField()
    state = serializers.ChoiceField(choices=GangState.choices)
    sentence = serializers.SerializerMethodField()
    gpus = serializers.FloatField()
    opened_at = serializers.DateTimeField()
    closed_at = serializers.DateTimeField(allow_null=True)

    def get_sentence(self, row: ReasonTimeline) -> str:
        veil: Veil = self.context["veil"]
        return veil.text(row.sentence, cluster=row.gang.cluster.name)


class AttemptSerializer(serializers.Serializer[Attempt]):
    """One attempt at the same thing: how far its gang came, and when; null where a step was not made or not seen."""

    id = serializers.CharField(source="gang.public_id")
    namespace = serializers.CharField(source="gang.namespace")
    name = serializers.CharField(source="gang.name")
    number = serializers.IntegerField()
    requested_at = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField(allow_null=True)
    gated_at = serializers.DateTimeField(allow_null=True)
    gates_removed_at = serializers.DateTimeField(allow_null=True)
    seen_at = serializers.DateTimeField()
    diagnosed_at = serializers.DateTimeField(allow_null=True, help_text="When its first verdict was given.")
    decided_at = serializers.DateTimeField(allow_null=True)
    bound_at = serializers.DateTimeField(allow_null=True)
    ready_at = serializers.DateTimeField(allow_null=True)
    evicted_at = serializers.DateTimeField(allow_null=True)
    evictions = serializers.IntegerField()
    ended_at = serializers.DateTimeField(allow_null=True)


class GangQuery(serializers.Serializer[GangFilter]):
    """The filters of the list; a parameter given several times means any of its values."""

    SEVERAL: ClassVar = frozenset({"cluster", "namespace", "queue", "verdict", "code", "who", "state"})

    cluster = serializers.ListField(child=serializers.CharField(max_length=253), required=False)
    namespace = serializers.ListField(child=serializers.CharField(max_length=253), required=False)
    queue = serializers.ListField(child=serializers.CharField(max_length=253), required=False)
    verdict = serializers.MultipleChoiceField(choices=[(v.value, v.value) for v in Verdict], required=False)
    code = serializers.MultipleChoiceField(choices=[(c.value, c.value) for c in ReasonCode], required=False)
    who = serializers.MultipleChoiceField(choices=[(w.value, w.value) for w in Who], required=False)
    state = serializers.MultipleChoiceField(choices=GangState.choices, required=False)
    text = serializers.CharField(
        max_length=200, required=False, allow_blank=True, help_text="Parts of names, all of them."
    )
    ordering = serializers.ChoiceField(
        choices=[(sign + name, sign + name) for name in ORDERINGS for sign in ("", "-")],
        required=False,
        help_text="A leading minus reverses it. Rows without a value come last in both directions.",
    )
    at = serializers.DateTimeField(
        required=False, help_text="A moment in the past: the gangs that had a verdict then, with that verdict."
    )
    page_size = serializers.IntegerField(min_value=1, max_value=CursorPages.max_page_size, required=False)

    def view(self) -> GangFilter:
        """Return the filter that the parameters ask for."""
        wanted = {name: value for name, value in self.validated_data.items() if name not in _NOT_FILTERS}
        text = wanted.pop("text", "")
        return GangFilter(text=text, **{name: tuple(sorted(values)) for name, values in wanted.items()})


@extend_schema_view(
    get=extend_schema(operation_id="gangs_list", parameters=[GangQuery], responses=GangSerializer(many=True))
)
class GangList(ReadView, generics.GenericAPIView[Gang]):
    """The gangs that exist now in clusters that are read."""

    serializer_class = GangSerializer
    pagination_class = CursorPages
    queryset = Gang.objects.none()

    def get(self, request: Request) -> Response:
        query = GangQuery(data=plain(request.query_params, several=GangQuery.SEVERAL))
        query.is_valid(raise_exception=True)
        ordering, at = query.validated_data.get("ordering", ""), query.validated_data.get("at")
        if at is None:
            page = self.paginate_queryset(ordered(gang_list(scope=self.scope, view=query.view()), ordering))
        else:
            then = gang_list_at(scope=self.scope, at=at, view=query.view())
            found = self.paginate_queryset(ordered(then, ordering, columns=_THEN)) or ()
            page = [gang_then(gang, at=at) for gang in found]
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), "veil": self.veil}


def ordered(rows: QuerySet[Gang], ordering: str, *, columns: Mapping[str, str] | None = None) -> QuerySet[Gang]:
    """Return the rows in an order that a cursor can follow: one value per row, never null, then the key.

    ``columns`` names the columns of orders that are not called like them.
    """
    name = ordering.removeprefix("-") or "waiting_since"
    sign = "-" if ordering.startswith("-") else ""
    last = _LAST_DESCENDING if sign else _LAST_ASCENDING
    column = (columns or {}).get(name, name)
    key: Any = Coalesce(F(column), Value(last[name])) if name in last else F(column)
    return rows.annotate(sort_key=key).order_by(f"{sign}sort_key", "pk")


class GangView(ReadView):
    """What the views of one gang share."""

    def gang(self, gang_id: str) -> Gang:
        return gang_get(scope=self.scope, public_id=gang_id)

    def record(self, gang_id: str) -> ExplanationRecord:
        """Return the explanation that the request asks for, the current one unless it names a moment."""
        moment, gang = moment_of(self.request), self.gang(gang_id)
        found = explanation_at(gang=gang, moment=moment) if moment else explanation_get(gang=gang)
        if found is None:
            raise ApplicationError("not_diagnosed", "Nothing was said about this gang at that time")
        return found


@extend_schema(parameters=[ID])
class GangDetail(GangView):
    """One gang, also after it is gone."""

    @extend_schema(operation_id="gangs_get", parameters=[MomentQuery], responses=GangDetailSerializer)
    def get(self, request: Request, gang_id: str) -> Response:
        at, gang = moment_of(request), self.gang(gang_id)
        if at is not None:
            then = gang_list_at(scope=self.scope, at=at).filter(pk=gang.pk).first()
            if then is None:
                raise ApplicationError("not_diagnosed", "Nothing was said about this gang at that time")
            gang = gang_then(then, at=at)
        return Response(GangDetailSerializer(gang, context={"veil": self.veil, "is_past": at is not None}).data)


@extend_schema(parameters=[ID])
class GangExplanation(GangView):
    """The explanation document: the same fields, letter by letter, that the command line prints."""

    @extend_schema(
        operation_id="gangs_explanation",
        parameters=[MomentQuery],
        responses=OpenApiResponse({"$ref": "#/components/schemas/ExplanationDocument"}),
    )
    def get(self, request: Request, gang_id: str) -> HttpResponse:
        text = document_text(record=self.record(gang_id), scope=self.scope)
        return HttpResponse(text, content_type="application/json")


@extend_schema(parameters=[ID])
class GangTimeline(GangView):
    """The reasons of a gang over time, oldest first."""

    @extend_schema(operation_id="gangs_timeline", responses=TimelineSerializer(many=True))
    def get(self, request: Request, gang_id: str) -> Response:
        rows = timeline_list(gang=self.gang(gang_id))
        return Response([TimelineSerializer(row, context={"veil": self.veil}).data for row in rows])


@extend_schema(parameters=[ID])
class GangAttempts(GangView):
    """The attempts that a gang is one of, oldest first: made anew, it is another gang with another id."""

    @extend_schema(operation_id="gangs_attempts", responses=AttemptSerializer(many=True))
    def get(self, request: Request, gang_id: str) -> Response:
        rows = attempt_diagnosed_list(scope=self.scope, gang=self.gang(gang_id))
        return Response([AttemptSerializer(row).data for row in rows])


@extend_schema(parameters=[ID])
class GangSnapshot(GangView):
    """The cluster's objects at the moment that the explanation is about, for the command line or a bug report.

    It holds the whole cluster, reduced to the fields that the rules read, so it takes the right to see all of it.
    """

    @extend_schema(
        operation_id="gangs_snapshot",
        parameters=[MomentQuery],
        responses={(200, "application/gzip"): OpenApiResponse({"type": "string", "format": "binary"})},
    )
    def get(self, request: Request, gang_id: str) -> HttpResponse:
        snapshot = self.record(gang_id).snapshot
        if not self.scope.sees_all:
            raise ApplicationError("whole_view_needed", "The objects of a cluster take the right to see all of it")
        content = snapshot_dump(snapshot=snapshot)
        name = dump_name(snapshot=snapshot)
        audit_record(action="snapshot.download", actor=self.reader, target=name, address=client_address(request))
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return HttpResponse(content, content_type="application/gzip", headers=headers)
