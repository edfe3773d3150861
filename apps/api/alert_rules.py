"""/alerts/rules and /alerts/routes: what is looked for, what it would have found, and where it leads.

Those who see everything may read and look back; only admins who are logged in may change anything.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound, PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.models import User
from apps.alerts.backtest import Backtest, Firing
from apps.alerts.choices import AlertSeverity
from apps.alerts.lookback import Lookback, lookback_all
from apps.alerts.models import AlertRule, Route
from apps.alerts.rules import RULES
from apps.alerts.rules.base import Param
from apps.alerts.selectors import route_list, rule_list
from apps.alerts.services.routes import RouteInput, route_delete, route_save
from apps.alerts.services.rules import (
    RuleInput,
    custom_row,
    input_of,
    rule_create,
    rule_delete,
    rule_update,
    setting_of,
)
from apps.api.alerts import person_only, whole_view
from apps.api.strict import Flag, Number, Text, Whole
from apps.api.views import ReadView, client_address, plain
from apps.clusters.selectors import cluster_list
from apps.delivery.models import Channel
from gangdash.engine.verdict import ReasonCode, Verdict, Who

DAYS_MOST = 30
KEY = OpenApiParameter("key", str, OpenApiParameter.PATH)


def _admin(user: User) -> None:
    if not user.is_admin:
        raise PermissionDenied("Rules and routes are for admins")


class ParamSerializer(serializers.Serializer[Param]):
    """A number of a rule, with its bounds."""

    name = serializers.CharField()
    title = serializers.CharField()
    default = serializers.FloatField()
    least = serializers.FloatField()
    most = serializers.FloatField()
    unit = serializers.CharField()


class ConditionSerializer(serializers.Serializer[Any]):
    """Which gangs a custom rule is about. Empty lists mean any; without verdicts and codes, those that wait."""

    verdicts = serializers.ListField(child=serializers.ChoiceField(choices=[str(v) for v in Verdict]), required=False)
    codes = serializers.ListField(child=serializers.ChoiceField(choices=[str(c) for c in ReasonCode]), required=False)
    who = serializers.ListField(child=serializers.ChoiceField(choices=[str(w) for w in Who]), required=False)
    gpus_least = Number(min_value=0, required=False)
    gpus_most = Number(min_value=0, required=False, allow_null=True)
    age_seconds = Number(min_value=0, required=False, help_text="Waits for at least.")


class RuleBody(serializers.Serializer[Any]):
    """What may be set of a rule; what is left out stays. Title and condition are a custom rule's only."""

    title = Text(max_length=120, required=False)
    condition = ConditionSerializer(required=False)
    severity = serializers.ChoiceField(choices=AlertSeverity.choices, required=False)
    for_seconds = Whole(min_value=0, required=False)
    keep_seconds = Whole(min_value=0, required=False)
    is_enabled = Flag(required=False)
    values = serializers.DictField(child=Number(), required=False)
    clusters = serializers.ListField(child=Text(max_length=253), required=False)
    namespaces = serializers.ListField(child=Text(max_length=253), required=False)
    queues = serializers.ListField(child=Text(max_length=253), required=False)


class NewRule(RuleBody):
    """A rule of one's own."""

    title = Text(max_length=120)
    condition = ConditionSerializer()


class RuleSerializer(serializers.Serializer[AlertRule]):
    """One rule with its settings."""

    key = serializers.CharField()
    number = serializers.IntegerField(allow_null=True, help_text="Of a rule of the list.")
    title = serializers.CharField()
    meaning = serializers.CharField()
    is_custom = serializers.BooleanField()
    condition = ConditionSerializer(allow_null=True)
    severity = serializers.ChoiceField(choices=AlertSeverity.choices)
    for_seconds = serializers.IntegerField()
    keep_seconds = serializers.IntegerField()
    is_enabled = serializers.BooleanField()
    values = serializers.SerializerMethodField(help_text="Every number of the rule as it is set.")
    params = serializers.SerializerMethodField()
    clusters = serializers.ListField(child=serializers.CharField())
    namespaces = serializers.ListField(child=serializers.CharField())
    queues = serializers.ListField(child=serializers.CharField())
    changed_at = serializers.DateTimeField(allow_null=True)
    changed_by = serializers.SerializerMethodField()

    def get_values(self, rule: AlertRule) -> dict[str, float]:
        return {} if rule.is_custom else RULES[rule.key].defaults() | rule.values

    @extend_schema(responses=ParamSerializer(many=True))
    def get_params(self, rule: AlertRule) -> Any:
        params: Any = () if rule.is_custom else RULES[rule.key].params
        return ParamSerializer(params, many=True).data

    def get_changed_by(self, rule: AlertRule) -> str | None:
        return rule.changed_by.username if rule.changed_by else None


class RulePage(serializers.Serializer[Any]):
    """Every rule, those of the list first."""

    results = RuleSerializer(many=True)


class RuleList(ReadView):
    """The rules, for those who see everything; the others get none."""

    @extend_schema(operation_id="alert_rules_list", responses=RulePage)
    def get(self, request: Request) -> Response:
        return Response(RulePage({"results": rule_list() if self.scope.sees_all else []}).data)

    @extend_schema(operation_id="alert_rules_create", request=NewRule, responses={201: RuleSerializer})
    def post(self, request: Request) -> Response:
        person_only(request)
        _admin(self.reader)
        values = _new_rule(request)
        rule = rule_create(values=values, actor=self.reader, address=client_address(request))
        return Response(RuleSerializer(rule).data, status=201)


def _new_rule(request: Request) -> RuleInput:
    body = NewRule(data=request.data)
    body.is_valid(raise_exception=True)
    return RuleInput(**{"severity": "ticket", "for_seconds": 600, "keep_seconds": 300} | body.validated_data)


def _rule(view: ReadView, key: str) -> AlertRule:
    whole_view(view.scope)
    found = rule_list().filter(key=key).first() if "\x00" not in key else None
    if found is None:
        raise NotFound("There is no such rule")
    return found


class RuleDetail(ReadView):
    """One rule."""

    @extend_schema(operation_id="alert_rules_get", parameters=[KEY], responses=RuleSerializer)
    def get(self, request: Request, key: str) -> Response:
        return Response(RuleSerializer(_rule(self, key)).data)

    @extend_schema(operation_id="alert_rules_change", parameters=[KEY], request=RuleBody, responses=RuleSerializer)
    def patch(self, request: Request, key: str) -> Response:
        person_only(request)
        rule = _rule(self, key)
        _admin(self.reader)
        body = RuleBody(data=request.data)
        body.is_valid(raise_exception=True)
        values = replace(input_of(rule), **body.validated_data)
        changed = rule_update(rule=rule, values=values, actor=self.reader, address=client_address(request))
        return Response(RuleSerializer(changed).data)

    @extend_schema(
        operation_id="alert_rules_delete", parameters=[KEY], responses={204: OpenApiResponse(description="Deleted.")}
    )
    def delete(self, request: Request, key: str) -> Response:
        person_only(request)
        rule = _rule(self, key)
        _admin(self.reader)
        rule_delete(rule=rule, actor=self.reader, address=client_address(request))
        return Response(status=204)


# --- looking back ------------------------------------------------------------------------------------------------


class FiringSerializer(serializers.Serializer[Firing]):
    """One time that the rule would have fired."""

    signature = serializers.CharField()
    at = serializers.DateTimeField()
    until = serializers.DateTimeField(allow_null=True, help_text="Null where it would still fire.")
    title = serializers.CharField()
    verdict = serializers.CharField()
    code = serializers.CharField()
    gangs = serializers.IntegerField()
    gpus = serializers.FloatField()
    is_carried = serializers.BooleanField(help_text="It had fired before the span began, and is not counted.")


class BacktestSerializer(serializers.Serializer[Backtest]):
    """The span that could be looked at, and what would have fired in it."""

    start = serializers.DateTimeField()
    end = serializers.DateTimeField()
    firings = FiringSerializer(many=True)


class LookbackSerializer(serializers.Serializer[Lookback]):
    """What a rule would have done in one cluster."""

    cluster = serializers.CharField()
    count = serializers.IntegerField(help_text="How many times it would have fired.")
    result = BacktestSerializer(allow_null=True, help_text="Null where nothing can be told from what is kept.")
    unknown = serializers.ListField(child=serializers.CharField(), help_text="What cannot be told, in words.")


class LookbackPage(serializers.Serializer[Any]):
    """The clusters that are read, each with what the rule would have done."""

    results = LookbackSerializer(many=True)


class LookbackQuery(serializers.Serializer[Any]):
    """How far to look back."""

    days = serializers.IntegerField(min_value=1, max_value=DAYS_MOST, required=False)


def _looked(view: ReadView, request: Request, rule: AlertRule) -> Response:
    query = LookbackQuery(data=plain(request.query_params))
    query.is_valid(raise_exception=True)
    clusters = cluster_list(scope=view.scope).filter(is_read=True)
    days = query.validated_data.get("days", 7)
    found = lookback_all(clusters=clusters, setting=setting_of(rule), end=timezone.now(), days=days)
    return Response(LookbackPage({"results": found}).data)


class RuleBacktest(ReadView):
    """What a rule would have done lately as it is set."""

    throttle_scope = "diagnose"

    @extend_schema(operation_id="alert_rules_backtest", parameters=[KEY, LookbackQuery], responses=LookbackPage)
    def get(self, request: Request, key: str) -> Response:
        return _looked(self, request, _rule(self, key))


class CustomBacktest(ReadView):
    """What a rule of one's own would have done, before it is saved. Nothing is stored."""

    throttle_scope = "diagnose"

    @extend_schema(
        operation_id="alert_backtest_create", parameters=[LookbackQuery], request=NewRule, responses=LookbackPage
    )
    def post(self, request: Request) -> Response:
        whole_view(self.scope)
        return _looked(self, request, custom_row(values=_new_rule(request)))


# --- routes ------------------------------------------------------------------------------------------------------


class RouteSerializer(serializers.Serializer[Route]):
    """Which alerts go to which channel; empty lists mean all."""

    id = serializers.IntegerField(source="pk", read_only=True)
    name = serializers.CharField(max_length=64)
    channel = serializers.CharField(source="channel.name", help_text="The channel's name.")
    severities = serializers.ListField(child=serializers.ChoiceField(choices=AlertSeverity.choices), required=False)
    rules = serializers.ListField(child=serializers.CharField(max_length=64), required=False)
    clusters = serializers.ListField(child=serializers.CharField(max_length=253), required=False)
    namespaces = serializers.ListField(child=serializers.CharField(max_length=253), required=False)
    queues = serializers.ListField(child=serializers.CharField(max_length=253), required=False)
    escalate_to = serializers.CharField(source="escalate_to.name", allow_null=True, required=False, default=None)
    escalate_after_minutes = serializers.IntegerField(min_value=1, allow_null=True, required=False)
    is_enabled = serializers.BooleanField(required=False, default=True)


class RoutePage(serializers.Serializer[Any]):
    """Every route."""

    results = RouteSerializer(many=True)


class RouteList(ReadView):
    """The routes, for those who see everything; the others get none."""

    @extend_schema(operation_id="alert_routes_list", responses=RoutePage)
    def get(self, request: Request) -> Response:
        return Response(RoutePage({"results": route_list() if self.scope.sees_all else []}).data)

    @extend_schema(operation_id="alert_routes_create", request=RouteSerializer, responses={201: RouteSerializer})
    def post(self, request: Request) -> Response:
        return Response(RouteSerializer(_route_saved(self, request, None)).data, status=201)


def _route(route_id: int) -> Route:
    found = route_list().filter(pk=route_id).first()
    if found is None:
        raise NotFound("There is no such route")
    return found


def _route_saved(view: ReadView, request: Request, route: Route | None) -> Route:
    person_only(request)
    _admin(view.reader)
    body = RouteSerializer(data=request.data)
    body.is_valid(raise_exception=True)
    wanted = body.validated_data
    second = (wanted.pop("escalate_to", None) or {}).get("name")
    channel = _channel(wanted.pop("channel")["name"])
    values = RouteInput(channel=channel, escalate_to=_channel(second) if second else None, **wanted)
    return route_save(route=route, values=values, actor=view.reader, address=client_address(request))


def _channel(name: str) -> Channel:
    found = Channel.objects.filter(name=name).first()
    if found is None:
        raise serializers.ValidationError({"channel": [f"There is no channel {name!r}"]})
    return found


class RouteDetail(ReadView):
    """One route."""

    @extend_schema(operation_id="alert_routes_get", responses=RouteSerializer)
    def get(self, request: Request, route_id: int) -> Response:
        whole_view(self.scope)
        return Response(RouteSerializer(_route(route_id)).data)

    @extend_schema(operation_id="alert_routes_change", request=RouteSerializer, responses=RouteSerializer)
    def put(self, request: Request, route_id: int) -> Response:
        return Response(RouteSerializer(_route_saved(self, request, _route(route_id))).data)

    @extend_schema(operation_id="alert_routes_delete", responses={204: OpenApiResponse(description="Deleted.")})
    def delete(self, request: Request, route_id: int) -> Response:
        person_only(request)
        _admin(self.reader)
        route_delete(route=_route(route_id), actor=self.reader, address=client_address(request))
        return Response(status=204)
