"""/objectives: how fast gangs are to start, and how that stands.

A standing counts gangs of every namespace, so it takes the right to see all of them; an admin who is logged in sets it.
"""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.report_schedules import admin_of
from apps.api.views import PrivateView, ReadView, client_address, plain
from apps.clusters.models import Cluster
from apps.clusters.selectors import cluster_get, cluster_list
from apps.workloads.models import ServiceObjective
from apps.workloads.objectives import Standing, objective_standing, objective_standings
from apps.workloads.services import ObjectiveTerms, objective_remove, objective_set


class StandingSerializer(serializers.Serializer[Standing]):
    """How an objective stands over its own window, up to now."""

    start = serializers.DateTimeField()
    end = serializers.DateTimeField()
    met = serializers.IntegerField()
    missed = serializers.IntegerField()
    total = serializers.IntegerField(help_text="Starts that count: met and missed.")
    share = serializers.FloatField(allow_null=True, help_text="The part that was met; null where nothing counted.")
    budget_left = serializers.FloatField(allow_null=True, help_text="Part of the budget; below zero once overspent.")
    burn = serializers.FloatField(allow_null=True, help_text="1 uses up the budget within the window.")
    undecided = serializers.IntegerField()
    over_quota = serializers.IntegerField()
    never_fits = serializers.IntegerField()
    too_large = serializers.IntegerField()
    size_unknown = serializers.IntegerField()
    quota_unknown = serializers.IntegerField(help_text="Of those that count, so many are taken to be within quota.")


class TermsSerializer(serializers.Serializer[Any]):
    """What is promised; what is left out is the default."""

    cluster = serializers.CharField(max_length=253, source="cluster.name")
    queue = serializers.CharField(
        max_length=253, allow_blank=True, default="", help_text="With the queues below it; empty is the whole cluster."
    )
    share = serializers.FloatField(default=0.95, min_value=0.5, max_value=0.9999)
    gpus_max = serializers.FloatField(default=64, min_value=0, help_text="Larger gangs do not count.")
    within_seconds = serializers.IntegerField(default=600, min_value=1, max_value=604_800)
    window_days = serializers.IntegerField(default=28, min_value=1, max_value=366)


class ObjectiveSerializer(TermsSerializer):
    """One objective with its standing."""

    id = serializers.IntegerField(source="pk", allow_null=True, help_text="Null for the default, which nobody set.")
    standing = StandingSerializer()


class ObjectivePage(serializers.Serializer[Any]):
    """The objectives, by cluster."""

    results = ObjectiveSerializer(many=True)


class ObjectiveQuery(serializers.Serializer[Any]):
    """Of which cluster."""

    cluster = serializers.CharField(max_length=253, required=False)


def shown(cluster: Cluster, objective: ServiceObjective, standing: Standing) -> dict[str, Any]:
    names = ("pk", "queue", "share", "gpus_max", "within_seconds", "window_days")
    return {"cluster": cluster, "standing": standing, **{name: getattr(objective, name) for name in names}}


class ObjectiveList(ReadView):
    """The objectives of every cluster that is read; none for those who see only some namespaces."""

    @extend_schema(operation_id="objectives_list", parameters=[ObjectiveQuery], responses=ObjectivePage)
    def get(self, request: Request) -> Response:
        query = ObjectiveQuery(data=plain(request.query_params))
        query.is_valid(raise_exception=True)
        clusters = list(cluster_list(scope=self.scope).filter(is_read=True)) if self.scope.sees_all else []
        wanted = query.validated_data.get("cluster")
        rows = [
            shown(cluster, objective, standing)
            for cluster in clusters
            if wanted in {None, cluster.name}
            for objective, standing in objective_standings(cluster_id=cluster.pk, now=timezone.now())
        ]
        return Response(ObjectivePage({"results": rows}).data)

    @extend_schema(operation_id="objectives_set", request=TermsSerializer, responses={201: ObjectiveSerializer})
    def post(self, request: Request) -> Response:
        actor = admin_of(request)
        sent = TermsSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        values = dict(sent.validated_data)
        cluster = cluster_get(scope=self.scope, name=values.pop("cluster")["name"])
        queue = values.pop("queue")
        row = objective_set(
            cluster=cluster, queue=queue, terms=ObjectiveTerms(**values), actor=actor, address=client_address(request)
        )
        standing = objective_standing(objective=row, now=timezone.now())
        return Response(ObjectiveSerializer(shown(cluster, row, standing)).data, status=201)


class ObjectiveDetail(PrivateView):
    """One objective that was set."""

    @extend_schema(operation_id="objectives_remove", responses={204: OpenApiResponse(description="Taken back.")})
    def delete(self, request: Request, objective_id: int) -> Response:
        actor = admin_of(request)
        row = ServiceObjective.objects.filter(pk=objective_id).select_related("cluster").first()
        if row is None:
            raise NotFound
        objective_remove(cluster=row.cluster, queue=row.queue, actor=actor, address=client_address(request))
        return Response(status=204)
