"""Addresses of the pages. Plural kebab-case; what a page shows is in the path, how it is filtered in the query."""

from __future__ import annotations

from django.contrib.auth.views import LoginView, LogoutView
from django.urls import URLPattern, URLResolver, include, path, re_path
from django.views.generic import RedirectView

from apps.dashboard.shell import guarded
from apps.dashboard.views import (
    account,
    alert_rules,
    alerts,
    channels,
    checks,
    clusters,
    deployments,
    gang,
    inventory,
    objectives,
    parts,
    reasons,
    reports,
    triage,
    uploads,
    whatif,
)

GANG = "clusters/<str:cluster>/gangs/<str:namespace>/<str:name>"
DEPLOYMENT = "clusters/<str:cluster>/deployments/<str:kind>/<str:namespace>/<str:name>/"
FORM = r"(?P<form>csv|json)"
REPORT = r"reports/(?P<report_id>[0-9]{1,15})"
REPORT_FORM = r"(?P<form>html|md|json|csv)"

pages: list[URLPattern | URLResolver] = [
    path("", guarded(triage.triage_page), name="triage"),
    path("fragments/freshness", guarded(parts.freshness_fragment), name="fragment-freshness"),
    path("fragments/triage-summary", guarded(triage.summary_fragment), name="fragment-summary"),
    path("fragments/triage-list", guarded(triage.list_fragment), name="fragment-list"),
    path("fragments/waiting-chart", guarded(triage.chart_fragment), name="fragment-chart"),
    path("fragments/changes", guarded(triage.changes_fragment), name="fragment-changes"),
    re_path(rf"^exports/waiting-gangs\.{FORM}$", guarded(triage.export), name="export"),
    path("palette", guarded(parts.palette), name="palette"),
    path("gangs/", guarded(inventory.gangs), name="gangs"),
    re_path(rf"^exports/gangs\.{FORM}$", guarded(inventory.gangs_export), name="gangs-export"),
    path("nodes/", guarded(inventory.nodes), name="nodes"),
    re_path(rf"^exports/nodes\.{FORM}$", guarded(inventory.nodes_export), name="nodes-export"),
    path("topology/", guarded(inventory.topology), name="topology"),
    path("queues/", guarded(inventory.queues), name="queues"),
    path("deployments/", guarded(deployments.deployments), name="deployments"),
    path(DEPLOYMENT, guarded(deployments.deployment), name="deployment"),
    path("checks/", guarded(checks.checks), name="checks"),
    path("alerts/", guarded(alerts.alerts), name="alerts"),
    path("alerts/<int:alert_id>/", guarded(alerts.alert), name="alert"),
    path("alerts/<int:alert_id>/acknowledge", guarded(alerts.acknowledge), name="alert-acknowledge"),
    path("alerts/mute", guarded(alerts.mute_new), name="mute-new"),
    path("alerts/mutes/<int:mute_id>/end", guarded(alerts.mute_end_now), name="mute-end"),
    path("alerts/rules/new", guarded(alert_rules.rule_new), name="alert-rule-new"),
    path("alerts/rules/<slug:key>/", guarded(alert_rules.rule_edit), name="alert-rule"),
    path("alerts/rules/<slug:key>/remove", guarded(alert_rules.rule_remove), name="alert-rule-remove"),
    path("alerts/routes/new", guarded(alert_rules.route_new), name="alert-route-new"),
    path("alerts/routes/<int:route_id>/", guarded(alert_rules.route_edit), name="alert-route"),
    path("alerts/routes/<int:route_id>/remove", guarded(alert_rules.route_remove), name="alert-route-remove"),
    path("channels/", guarded(channels.channels), name="channels"),
    path("channels/log/", guarded(channels.deliveries), name="deliveries"),
    path("channels/log/<str:delivery_id>/resend", guarded(channels.resend), name="delivery-resend"),
    path("channels/new/<str:kind>/", guarded(channels.channel_new), name="channel-new"),
    path("channels/<int:channel_id>/", guarded(channels.channel), name="channel"),
    path("channels/<int:channel_id>/fragment", guarded(channels.channel_fragment), name="channel-fragment"),
    path("channels/<int:channel_id>/do/<str:action>", guarded(channels.channel_do), name="channel-do"),
    path("clusters/", guarded(clusters.clusters), name="clusters"),
    path("clusters/<str:name>/", guarded(clusters.cluster), name="cluster"),
    path("clusters/<str:cluster>/whatif/", guarded(whatif.whatif_page), name="whatif"),
    path(f"{GANG}/", guarded(gang.gang_detail), name="gang"),
    path(f"{GANG}/fragment", guarded(gang.gang_fragment), name="gang-fragment"),
    path(f"{GANG}/explanation.json", guarded(gang.gang_explanation), name="gang-explanation"),
    path(f"{GANG}/snapshot.json.gz", guarded(gang.gang_snapshot), name="gang-snapshot"),
    path("reasons/", guarded(reasons.reasons), name="reasons"),
    path("reasons/<str:code>/", guarded(reasons.reason), name="reason"),
    path("objectives/", guarded(objectives.objectives), name="objectives"),
    path("objectives/<int:objective_id>/remove", guarded(objectives.objective_drop), name="objective-remove"),
    path("reports/", guarded(reports.reports), name="reports"),
    path("reports/<int:report_id>/", guarded(reports.report), name="report"),
    path("reports/<int:report_id>/fragment", guarded(reports.report_fragment), name="report-fragment"),
    path("reports/<int:report_id>/send", guarded(reports.report_tell), name="report-send"),
    re_path(rf"^{REPORT}/report\.{REPORT_FORM}$", guarded(reports.report_file), name="report-file"),
    path("reports/schedules/new", guarded(reports.schedule_new), name="report-schedule-new"),
    path("reports/schedules/<int:schedule_id>/", guarded(reports.schedule_edit), name="report-schedule"),
    path("reports/schedules/<int:schedule_id>/remove", guarded(reports.schedule_remove), name="report-schedule-remove"),
    path("uploads/", guarded(uploads.upload_new), name="upload"),
    path("uploads/<str:upload_id>/", guarded(uploads.upload_answer), name="upload-answer"),
    path("uploads/<str:upload_id>/fragment", guarded(uploads.upload_fragment), name="upload-fragment"),
    path("uploads/<str:upload_id>/diagnosis.json", guarded(uploads.upload_document), name="upload-document"),
    path("account/", guarded(account.account), name="account"),
    path("account/tokens/<int:token_id>/revoke", guarded(account.revoke_token), name="token-revoke"),
    path("account/password/", account.password, name="password"),
]

urlpatterns: list[URLPattern | URLResolver] = [
    path("c/<str:cluster>/whatif", RedirectView.as_view(pattern_name="dashboard:whatif", query_string=True)),
    path("login/", LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("", include((pages, "dashboard"))),
]
