"""/clusters: what is read, and how fresh and how complete it is."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.services import audit_record
from apps.api.views import ReadView, client_address, plain
from apps.clusters.choices import Freshness, PollOutcome, Source
from apps.clusters.models import Cluster, KindFreshness, PollRun
from apps.clusters.selectors import cluster_get, cluster_list, freshness_state, kind_list, poll_run_list
from apps.diagnosis.services.downloads import moment_dump
from apps.errors import ApplicationError

RUNS_SHOWN = 20


class ClusterSerializer(serializers.Serializer[Cluster]):
    """One cluster. What was read and what was diagnosed are true for different moments."""

    name = serializers.CharField()
    # The base class has attributes of these names, which its metaclass keeps apart from fields.
    source = serializers.ChoiceField(choices=Source.choices)  # type: ignore[assignment]
    context = serializers.CharField()  # type: ignore[assignment]
    is_read = serializers.BooleanField()
    removed_at = serializers.DateTimeField(allow_null=True)
    server_version = serializers.CharField()
    skew_seconds = serializers.FloatField(allow_null=True, help_text="How far its clock is ahead of the reader's.")
    freshness = serializers.SerializerMethodField()
    read_as_of = serializers.DateTimeField(allow_null=True)
    diagnosed_as_of = serializers.DateTimeField(allow_null=True)
    diagnosed_digest = serializers.CharField()
    engine = serializers.CharField()
    fault_code = serializers.CharField()
    fault = serializers.CharField(help_text="Why the newest poll read nothing.")

    @extend_schema(responses=serializers.ChoiceField(choices=Freshness.choices))
    def get_freshness(self, cluster: Cluster) -> str:
        return str(freshness_state(cluster=cluster, now=timezone.now()))


class ClusterPage(serializers.Serializer[Any]):
    """All visible clusters."""

    results = ClusterSerializer(many=True)


class KindSerializer(serializers.Serializer[KindFreshness]):
    """One kind; time and count are of the last reading that had it."""

    kind = serializers.CharField()
    is_required = serializers.BooleanField()
    is_read = serializers.BooleanField()
    reason = serializers.CharField()
    read_at = serializers.DateTimeField(allow_null=True)
    checked_at = serializers.DateTimeField()
    count = serializers.IntegerField(allow_null=True)


class PollRunSerializer(serializers.Serializer[PollRun]):
    """One attempt to read a cluster."""

    started_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)
    outcome = serializers.ChoiceField(choices=PollOutcome.choices)
    code = serializers.CharField()
    detail = serializers.CharField()
    requests = serializers.IntegerField()
    received_bytes = serializers.IntegerField()
    rows_written = serializers.IntegerField()
    is_unchanged = serializers.BooleanField()


class HealthSerializer(serializers.Serializer[Any]):
    """How far the answers about one cluster can be trusted."""

    cluster = ClusterSerializer()
    kinds = KindSerializer(many=True)
    polls = PollRunSerializer(many=True)


class ClusterList(ReadView):
    """The clusters in which something is visible, removed ones too."""

    @extend_schema(operation_id="clusters_list", responses=ClusterPage)
    def get(self, request: Request) -> Response:
        return Response(ClusterPage({"results": cluster_list(scope=self.scope)}).data)


class ClusterHealth(ReadView):
    """What is read of one cluster, what is not and why, and how the newest polls went."""

    @extend_schema(operation_id="clusters_health", responses=HealthSerializer)
    def get(self, request: Request, name: str) -> Response:
        cluster = cluster_get(scope=self.scope, name=name)
        content = {
            "cluster": cluster,
            "kinds": kind_list(cluster=cluster),
            "polls": poll_run_list(cluster=cluster)[:RUNS_SHOWN],
        }
        return Response(HealthSerializer(content).data)


class MomentSerializer(serializers.Serializer[Any]):
    """The moment that is asked for."""

    at = serializers.DateTimeField(help_text="A moment in the past.")


class ClusterSnapshot(ReadView):
    """What a cluster was read to have at a moment, as a dump that any version replays.

    It holds the whole cluster, reduced to the fields that the rules read, so it takes the right to see all of it.
    """

    @extend_schema(
        operation_id="clusters_snapshot",
        parameters=[MomentSerializer],
        responses={(200, "application/gzip"): OpenApiResponse({"type": "string", "format": "binary"})},
    )
    def get(self, request: Request, name: str) -> HttpResponse:
        cluster = cluster_get(scope=self.scope, name=name)
        query = MomentSerializer(data=plain(request.query_params))
        query.is_valid(raise_exception=True)
        if not self.scope.sees_all:
            raise ApplicationError("whole_view_needed", "The objects of a cluster take the right to see all of it")
        file, content = moment_dump(cluster=cluster, at=query.validated_data["at"])
        audit_record(action="snapshot.download", actor=self.reader, target=file, address=client_address(request))
        headers = {"Content-Disposition": f'attachment; filename="{file}"'}
        return HttpResponse(content, content_type="application/gzip", headers=headers)
