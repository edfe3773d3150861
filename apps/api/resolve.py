"""/resolve: from any object of a chain to the gangs it leads to and what is said of them."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.gangs import GangSerializer
from apps.api.views import ReadView, plain
from apps.chains.selectors import Resolved, resolve
from apps.clusters.selectors import cluster_list
from apps.errors import ApplicationError


class ResolveQuery(serializers.Serializer[Any]):
    """One object. The cluster may be left out where only one is visible."""

    cluster = serializers.CharField(max_length=253, required=False)
    kind = serializers.CharField(
        max_length=64, help_text="As the API server writes it: PodClique, Pod, StatefulSet ..."
    )
    namespace = serializers.CharField(max_length=253)
    name = serializers.CharField(max_length=253)


class ResolvedSerializer(serializers.Serializer[Resolved]):
    """Where an object leads. Several gangs are no error: a scaled workload has several."""

    gangs = serializers.SerializerMethodField()
    explanations = serializers.SerializerMethodField(help_text="Addresses of the gangs' explanations, in their order.")
    deployment = serializers.SerializerMethodField(help_text="Id of the workload on top, null where there is none.")

    @extend_schema(responses=GangSerializer(many=True))
    def get_gangs(self, found: Resolved) -> Any:
        return [GangSerializer(gang, context=self.context).data for gang in found.gangs]

    def get_explanations(self, found: Resolved) -> list[str]:
        return [f"/api/v1/gangs/{gang.public_id}/explanation" for gang in found.gangs]

    def get_deployment(self, found: Resolved) -> str | None:
        return found.top.public_id if found.top is not None else None


class ResolveView(ReadView):
    """Find the gang of an object."""

    @extend_schema(operation_id="resolve", parameters=[ResolveQuery], responses=ResolvedSerializer)
    def get(self, request: Request) -> Response:
        query = ResolveQuery(data=plain(request.query_params))
        query.is_valid(raise_exception=True)
        wanted = dict(query.validated_data)
        wanted.setdefault("cluster", self._only_cluster() if "cluster" not in wanted else "")
        found = resolve(scope=self.scope, **wanted)
        if not found.is_known:
            raise Http404
        return Response(ResolvedSerializer(found, context={"veil": self.veil}).data)

    def _only_cluster(self) -> str:
        names = list(cluster_list(scope=self.scope).filter(removed_at=None).values_list("name", flat=True)[:2])
        if len(names) != 1:
            raise ApplicationError("cluster_needed", "Several clusters are visible: name one")
        return names[0]
