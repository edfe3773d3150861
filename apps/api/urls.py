"""Routes of /api/v1/."""

from __future__ import annotations

from django.urls import URLPattern, path, re_path

from apps.api.alert_rules import CustomBacktest, RouteDetail, RouteList, RuleBacktest, RuleDetail, RuleList
from apps.api.alerts import AlertAcknowledge, AlertDetail, AlertList, MuteDetail, MuteList
from apps.api.audit import AuditList
from apps.api.channels import (
    ChannelDetail,
    ChannelList,
    ChannelRetry,
    ChannelTest,
    DeliveryDetail,
    DeliveryList,
    DeliveryResend,
)
from apps.api.checks import CheckList
from apps.api.clusters import ClusterHealth, ClusterList, ClusterSnapshot
from apps.api.deployments import DeploymentDetail, DeploymentList, DeploymentTimeline
from apps.api.diagnose import DiagnoseAnswer, DiagnoseView
from apps.api.gangs import GangAttempts, GangDetail, GangExplanation, GangList, GangSnapshot, GangTimeline
from apps.api.history import ClusterCapacity, ClusterChanges, LoopList
from apps.api.objectives import ObjectiveDetail, ObjectiveList
from apps.api.reasons import ReasonDetail, ReasonList
from apps.api.report_schedules import ScheduleDetail, ScheduleList
from apps.api.reports import ReportDetail, ReportFile, ReportList
from apps.api.resolve import ResolveView
from apps.api.schema import SchemaView
from apps.api.tokens import TokenDetail, TokenList
from apps.api.views import NothingHere
from apps.api.whatif import WhatIfView

app_name = "api"
urlpatterns: list[URLPattern] = [
    path("schema", SchemaView.as_view(), name="schema"),
    path("clusters", ClusterList.as_view(), name="clusters"),
    path("clusters/<str:name>/health", ClusterHealth.as_view(), name="cluster-health"),
    path("clusters/<str:name>/snapshot", ClusterSnapshot.as_view(), name="cluster-snapshot"),
    path("clusters/<str:name>/changes", ClusterChanges.as_view(), name="cluster-changes"),
    path("clusters/<str:name>/capacity", ClusterCapacity.as_view(), name="cluster-capacity"),
    path("loops", LoopList.as_view(), name="loops"),
    path("gangs", GangList.as_view(), name="gangs"),
    path("gangs/<str:gang_id>", GangDetail.as_view(), name="gang"),
    path("gangs/<str:gang_id>/explanation", GangExplanation.as_view(), name="gang-explanation"),
    path("gangs/<str:gang_id>/timeline", GangTimeline.as_view(), name="gang-timeline"),
    path("gangs/<str:gang_id>/attempts", GangAttempts.as_view(), name="gang-attempts"),
    path("gangs/<str:gang_id>/snapshot", GangSnapshot.as_view(), name="gang-snapshot"),
    path("deployments", DeploymentList.as_view(), name="deployments"),
    path("deployments/<str:deployment_id>", DeploymentDetail.as_view(), name="deployment"),
    path("deployments/<str:deployment_id>/timeline", DeploymentTimeline.as_view(), name="deployment-timeline"),
    path("alerts/instances", AlertList.as_view(), name="alerts"),
    path("alerts/instances/<int:alert_id>", AlertDetail.as_view(), name="alert"),
    path("alerts/instances/<int:alert_id>/acknowledge", AlertAcknowledge.as_view(), name="alert-acknowledge"),
    path("alerts/rules", RuleList.as_view(), name="alert-rules"),
    path("alerts/rules/<str:key>", RuleDetail.as_view(), name="alert-rule"),
    path("alerts/rules/<str:key>/backtest", RuleBacktest.as_view(), name="alert-rule-backtest"),
    path("alerts/backtest", CustomBacktest.as_view(), name="alert-backtest"),
    path("alerts/routes", RouteList.as_view(), name="alert-routes"),
    path("alerts/routes/<int:route_id>", RouteDetail.as_view(), name="alert-route"),
    path("alerts/mutes", MuteList.as_view(), name="mutes"),
    path("alerts/mutes/<int:mute_id>", MuteDetail.as_view(), name="mute"),
    path("resolve", ResolveView.as_view(), name="resolve"),
    path("checks", CheckList.as_view(), name="checks"),
    path("reasons", ReasonList.as_view(), name="reasons"),
    path("reasons/<str:code>", ReasonDetail.as_view(), name="reason"),
    path("objectives", ObjectiveList.as_view(), name="objectives"),
    path("objectives/<int:objective_id>", ObjectiveDetail.as_view(), name="objective"),
    path("reports", ReportList.as_view(), name="reports"),
    path("reports/<int:report_id>", ReportDetail.as_view(), name="report"),
    path("reports/<int:report_id>/files/<str:form>", ReportFile.as_view(), name="report-file"),
    path("report-schedules", ScheduleList.as_view(), name="report-schedules"),
    path("report-schedules/<int:schedule_id>", ScheduleDetail.as_view(), name="report-schedule"),
    path("channels", ChannelList.as_view(), name="channels"),
    path("channels/<int:channel_id>", ChannelDetail.as_view(), name="channel"),
    path("channels/<int:channel_id>/test", ChannelTest.as_view(), name="channel-test"),
    path("channels/<int:channel_id>/retry", ChannelRetry.as_view(), name="channel-retry"),
    path("deliveries", DeliveryList.as_view(), name="deliveries"),
    path("deliveries/<str:delivery_id>", DeliveryDetail.as_view(), name="delivery"),
    path("deliveries/<str:delivery_id>/resend", DeliveryResend.as_view(), name="delivery-resend"),
    path("diagnose", DiagnoseView.as_view(), name="diagnose"),
    path("diagnose/<str:upload_id>", DiagnoseAnswer.as_view(), name="diagnose-answer"),
    path("whatif", WhatIfView.as_view(), name="whatif"),
    path("audit", AuditList.as_view(), name="audit"),
    path("tokens", TokenList.as_view(), name="tokens"),
    path("tokens/<int:token_id>", TokenDetail.as_view(), name="token"),
    re_path("", NothingHere.as_view(), name="nothing"),
]
