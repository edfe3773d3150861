"""/deployments: what people submitted to Dynamo or Grove, layer by layer, and where each stands."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.paging import CursorPages
from apps.api.views import MomentQuery, ReadView, moment_of, plain
from apps.chains.models import TopMoment, TopObject
from apps.chains.moments import top_then
from apps.chains.selectors import moment_list, top_by_id, top_by_id_at, top_list, top_list_at
from apps.workloads.veil import Veil

ID = OpenApiParameter("deployment_id", str, OpenApiParameter.PATH, description="cluster~uid, as lists give it")


class LayerSerializer(serializers.Serializer[Any]):
    """The objects of one kind under a component. A null count is one that no object states."""

    kind = serializers.CharField()
    names = serializers.ListField(child=serializers.CharField(), help_text="The first twenty.")
    wanted = serializers.IntegerField(allow_null=True)
    exist = serializers.IntegerField(allow_null=True)
    gated = serializers.IntegerField(allow_null=True)
    placed = serializers.IntegerField(allow_null=True)
    ready = serializers.IntegerField(allow_null=True)


class ComponentSerializer(serializers.Serializer[Any]):
    """One component with its layers from the top down."""

    name = serializers.CharField()
    type = serializers.CharField()
    replicas = serializers.IntegerField(allow_null=True)
    nodes = serializers.IntegerField(help_text="Nodes that one replica spans.")
    gpus_per_pod = serializers.FloatField(allow_null=True)
    layers = LayerSerializer(many=True)


class GangStandingSerializer(serializers.Serializer[Any]):
    """One PodGang; its stage is empty once it is handed to the scheduler."""

    podgang = serializers.CharField()
    bases = serializers.ListField(child=serializers.CharField(), help_text="The gangs that it waits for.")
    podgroups = serializers.ListField(child=serializers.CharField())
    stage = serializers.CharField()
    problem = serializers.CharField()


class RemarkSerializer(serializers.Serializer[Any]):
    """What is wrong beside the stage."""

    stage = serializers.CharField()
    proof = serializers.CharField()
    # The base class has an attribute of this name, which its metaclass keeps apart from fields.
    field = serializers.CharField()
    problem = serializers.CharField()


class DeploymentSerializer(serializers.Serializer[TopObject]):
    """A DynamoGraphDeployment or PodCliqueSet in a list."""

    id = serializers.CharField(source="public_id")
    cluster = serializers.CharField(source="cluster.name")
    kind = serializers.CharField()
    namespace = serializers.CharField()
    name = serializers.CharField()
    uid = serializers.CharField()
    api_version = serializers.CharField()
    created_at = serializers.DateTimeField(allow_null=True)
    stage = serializers.CharField(help_text="The first of S0 to S15 not passed; empty once all is handed over.")
    controller = serializers.CharField(help_text="Who owes the next step.")
    proof = serializers.CharField(help_text="The object that proves the stage.")
    field = serializers.CharField()
    problem = serializers.SerializerMethodField()
    since = serializers.DateTimeField(allow_null=True)
    is_overdue = serializers.BooleanField()
    read_as_of = serializers.DateTimeField(source="cluster.read_as_of", allow_null=True)

    def get_problem(self, row: TopObject) -> str:
        veil: Veil = self.context["veil"]
        return veil.text(row.problem, cluster=row.cluster.name)


class DeploymentDetailSerializer(DeploymentSerializer):
    """One workload with its ladder."""

    components = ComponentSerializer(many=True)
    gangs = GangStandingSerializer(many=True)
    remarks = serializers.SerializerMethodField()

    @extend_schema(responses=RemarkSerializer(many=True))
    def get_remarks(self, row: TopObject) -> Any:
        veil: Veil = self.context["veil"]
        return veil.value(row.remarks, cluster=row.cluster.name)


class DeploymentQuery(serializers.Serializer[Any]):
    """The filters of the list."""

    cluster = serializers.CharField(max_length=253, required=False)
    namespace = serializers.CharField(max_length=253, required=False)
    text = serializers.CharField(max_length=200, required=False, allow_blank=True, help_text="Parts of names.")
    at = serializers.DateTimeField(required=False, help_text="A moment in the past: how the workloads stood then.")
    page_size = serializers.IntegerField(min_value=1, max_value=CursorPages.max_page_size, required=False)


@extend_schema_view(
    get=extend_schema(
        operation_id="deployments_list", parameters=[DeploymentQuery], responses=DeploymentSerializer(many=True)
    )
)
class DeploymentList(ReadView, generics.GenericAPIView[TopObject]):
    """The workloads of Dynamo and Grove that exist now."""

    serializer_class = DeploymentSerializer
    pagination_class = CursorPages
    queryset = TopObject.objects.none()

    def get(self, request: Request) -> Response:
        query = DeploymentQuery(data=plain(request.query_params))
        query.is_valid(raise_exception=True)
        wanted = {name: query.validated_data.get(name, "") for name in ("cluster", "namespace", "text")}
        at = query.validated_data.get("at")
        if at is None:
            page = self.paginate_queryset(top_list(scope=self.scope, **wanted).order_by("pk"))
        else:
            moments: Any = top_list_at(scope=self.scope, at=at, **wanted).order_by("pk")
            page = [top_then(moment) for moment in self.paginate_queryset(moments) or ()]
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), "veil": self.veil}


class MomentSerializer(serializers.Serializer[TopMoment]):
    """How a workload stood from a moment on; ``until`` is null while it still does."""

    since = serializers.DateTimeField()
    until = serializers.DateTimeField(allow_null=True)
    stage = serializers.CharField(source="facts.stage")
    controller = serializers.CharField(source="facts.controller")
    problem = serializers.SerializerMethodField()
    is_overdue = serializers.BooleanField(source="facts.is_overdue")

    def get_problem(self, row: TopMoment) -> str:
        veil: Veil = self.context["veil"]
        return veil.text(row.facts["problem"], cluster=row.cluster.name)


@extend_schema(parameters=[ID])
class DeploymentDetail(ReadView):
    """One workload, component by component, now or as it stood at a moment."""

    @extend_schema(operation_id="deployments_get", parameters=[MomentQuery], responses=DeploymentDetailSerializer)
    def get(self, request: Request, deployment_id: str) -> Response:
        at = moment_of(request)
        if at is None:
            found = top_by_id(scope=self.scope, public_id=deployment_id)
        else:
            found = top_by_id_at(scope=self.scope, at=at, public_id=deployment_id)
        return Response(DeploymentDetailSerializer(found, context={"veil": self.veil}).data)


@extend_schema(parameters=[ID])
class DeploymentTimeline(ReadView):
    """Where one workload stood over time, oldest first, as far as it is kept."""

    @extend_schema(operation_id="deployments_timeline", responses=MomentSerializer(many=True))
    def get(self, request: Request, deployment_id: str) -> Response:
        top = top_by_id(scope=self.scope, public_id=deployment_id)
        rows = moment_list(top=top).select_related("cluster").reverse()
        return Response([MomentSerializer(row, context={"veil": self.veil}).data for row in rows])
