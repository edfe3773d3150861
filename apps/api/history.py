"""What happened to a cluster: states of nodes and parts of the platform, capacity and shares, attempts in a loop."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.gangs import GangSerializer
from apps.api.paging import CursorPages
from apps.api.views import ReadView, plain
from apps.clusters.selectors import cluster_get
from apps.inventory.models import CapacitySample, StateChange
from apps.inventory.selectors import capacity_span, state_change_list
from apps.workloads.selectors import AttemptLoop, loop_list

SPAN = timedelta(days=1)
"""How far back an answer goes where no moment is named."""


class ChangeSerializer(serializers.Serializer[StateChange]):
    """A node or a part of the platform came, went, or changed its state."""

    kind = serializers.CharField(help_text="`Node`, or `Deployment` for a part of the platform.")
    subject = serializers.CharField()
    at = serializers.DateTimeField()
    state = serializers.CharField()
    was = serializers.CharField(help_text="Empty for the first state that was seen.")
    reason = serializers.CharField()


class ShareSerializer(serializers.Serializer[Any]):
    """One queue at one moment, in GPUs; null where the replay computed none, a fair share of -1 is unlimited."""

    allocated = serializers.FloatField(allow_null=True)
    fair_share = serializers.FloatField(allow_null=True)


class RoomSerializer(serializers.Serializer[Any]):
    """One place at one moment, in GPUs; what is neither free nor lost is held."""

    gpus = serializers.FloatField()
    free = serializers.FloatField()
    lost = serializers.FloatField()


class SampleSerializer(serializers.Serializer[CapacitySample]):
    """Shares and free capacity from a moment on, true until the next sample."""

    at = serializers.DateTimeField()
    cluster = serializers.SerializerMethodField()
    queues = serializers.SerializerMethodField()
    domains = serializers.SerializerMethodField(help_text="By `topology|path` of the domain.")

    @extend_schema(responses=RoomSerializer)
    def get_cluster(self, sample: CapacitySample) -> dict[str, float]:
        return _room(sample.domains[""])

    @extend_schema(responses=serializers.DictField(child=ShareSerializer()))
    def get_queues(self, sample: CapacitySample) -> dict[str, dict[str, float | None]]:
        return {name: {"allocated": held, "fair_share": fair} for name, (held, fair) in sample.queues.items()}

    @extend_schema(responses=serializers.DictField(child=RoomSerializer()))
    def get_domains(self, sample: CapacitySample) -> dict[str, dict[str, float]]:
        return {key: _room(amounts) for key, amounts in sample.domains.items() if key}


def _room(amounts: list[float]) -> dict[str, float]:
    gpus, free, lost = amounts[:3]
    return {"gpus": gpus, "free": free, "lost": lost}


class LoopSerializer(serializers.Serializer[AttemptLoop]):
    """The newest gang of what fails again and again, with what happened to it and those before it in two hours."""

    gang = GangSerializer()
    failures = serializers.IntegerField(help_text="Attempts that ended before they were ready.")
    evictions = serializers.IntegerField(help_text="Times that it lost its nodes.")


class LoopPage(serializers.Serializer[Any]):
    """All visible loops."""

    results = LoopSerializer(many=True)


class LoopQuery(serializers.Serializer[Any]):
    """The filter of loops."""

    cluster = serializers.CharField(max_length=253, required=False)


class SinceQuery(serializers.Serializer[Any]):
    """How far back."""

    since = serializers.DateTimeField(required=False, help_text="Default: one day ago.")
    page_size = serializers.IntegerField(min_value=1, max_value=CursorPages.max_page_size, required=False)


def since_of(request: Request) -> Any:
    query = SinceQuery(data=plain(request.query_params))
    query.is_valid(raise_exception=True)
    return query.validated_data.get("since") or timezone.now() - SPAN


@extend_schema_view(
    get=extend_schema(operation_id="clusters_changes", parameters=[SinceQuery], responses=ChangeSerializer(many=True))
)
class ClusterChanges(ReadView, generics.GenericAPIView[StateChange]):
    """What nodes and parts of the platform did, newest first."""

    serializer_class = ChangeSerializer
    pagination_class = CursorPages
    queryset = StateChange.objects.none()

    def get(self, request: Request, name: str) -> Response:
        cluster = cluster_get(scope=self.scope, name=name)
        rows = state_change_list(scope=self.scope, cluster=cluster.name, since=since_of(request))
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(self.get_serializer(page, many=True).data)


class ClusterCapacity(ReadView):
    """Shares and free capacity over time, oldest first; the first sample is the one that was true at the beginning."""

    @extend_schema(operation_id="clusters_capacity", parameters=[SinceQuery], responses=SampleSerializer(many=True))
    def get(self, request: Request, name: str) -> Response:
        cluster = cluster_get(scope=self.scope, name=name)
        rows = capacity_span(scope=self.scope, cluster=cluster.name, since=since_of(request))
        return Response([SampleSerializer(row).data for row in rows])


class LoopList(ReadView):
    """What fails again and again: many attempts that ended unready, or one gang that keeps losing its nodes."""

    @extend_schema(operation_id="loops_list", parameters=[LoopQuery], responses=LoopPage)
    def get(self, request: Request) -> Response:
        query = LoopQuery(data=plain(request.query_params))
        query.is_valid(raise_exception=True)
        cluster = query.validated_data.get("cluster", "")
        rows = loop_list(scope=self.scope, now=timezone.now(), cluster=cluster)
        return Response(LoopPage({"results": rows}, context={"veil": self.veil}).data)
