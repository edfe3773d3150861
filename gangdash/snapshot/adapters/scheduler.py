"""How the scheduler is configured: from its own snapshot, or put together from the objects of a cluster.

A scheduler snapshot carries the resolved configuration. From objects, the configuration file in the
shard's ConfigMap is what the scheduler loaded, and its Deployment's arguments are what it was started
with; where they were not read, SchedulingShard and Config say what the operator makes of them; defaults
fill the rest. Mirrors pkg/apis/kai/v1/schedulingshard_types.go and pkg/operator/operands/scheduler
(KAI d5bc503a).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gangdash.engine.model.config import Plugin, SchedulerConfig, SchedulerParams, Shard
from gangdash.kube import quantity
from gangdash.kube.allowed import kept_scheduler_args
from gangdash.kube.reading import SchedulerFile
from gangdash.kube.records import base, kai
from gangdash.snapshot.adapters.common import FieldError, seconds

_PLUGIN_PRIORITIES = {
    "predicates": 1900, "proportion": 1800, "priority": 1700, "nodeavailability": 1600, "resourcetype": 1500,
    "podaffinity": 1400, "elastic": 1300, "kubeflow": 1200, "ray": 1100, "subgrouporder": 1000, "taskorder": 900,
    "nominatednode": 800, "dynamicresources": 700, "minruntime": 600, "topology": 500, "snapshot": 400,
    "sg-nodelocalgreedy": 360, "sg-multinodegang": 350, "gpupack": 300, "gpuspread": 300, "nodeplacement": 200,
    "gpusharingorder": 100,
}  # fmt: skip
_ACTION_PRIORITIES = {"allocate": 500, "consolidation": 400, "reclaim": 300, "preempt": 200, "stalegangeviction": 100}
_BUDGETS = {
    "maxActionSearchDuration.default": 300.0, "maxJobSearchDuration": 240.0, "minJobSearchDuration": 0.0,
    "maxGeneratorSearchDuration.default": 120.0, "maxGeneratorSearchDuration.NodeLocalGreedy": 30.0,
    "maxGeneratorSearchDuration.MultiNodeGang": 120.0,
}  # fmt: skip
_NANO = 1e-9


def shard_from_file(file: SchedulerFile) -> Shard:
    """Return the one shard of a scheduler snapshot; flags that it leaves out are zero, not default."""
    given = file.scheduler_params
    partition = given.partition_params or kai.PartitionParams()
    params = SchedulerParams(
        scheduler_name=given.scheduler_name,
        restrict_node_scheduling=given.restrict_scheduling_nodes,
        node_pool_label_key=partition.node_pool_label_key,
        node_pool_label_value=partition.node_pool_label_value,
        max_consolidation_preemptees=given.max_number_consolidation_preemptees,
        schedule_csi_storage=given.schedule_csi_storage,
        use_scheduling_signatures=given.use_scheduling_signatures,
        full_hierarchy_fairness=given.full_hierarchy_fairness,
        allow_consolidating_reclaim=given.allow_consolidating_reclaim,
        staleness_grace=given.global_default_staleness_grace_period * _NANO,
        schedule_period=given.schedule_period * _NANO,
        stuck_in_releasing=given.stuck_in_releasing_threshold * _NANO,
        detailed_fit_errors=given.detailed_fit_errors,
        update_pod_eviction_condition=given.update_pod_eviction_condition,
        queue_label_key=given.queue_label_key,
    )
    config = replace(_config_from_file(file.config), params=params)
    return Shard(partition.node_pool_label_value or "default", config, ("config", "schedulerParams"))


def _config_from_file(file: kai.SchedulerConfig) -> SchedulerConfig:
    default = SchedulerConfig()
    return SchedulerConfig(
        actions=tuple(a.strip() for a in file.actions.split(",") if a.strip()) if file.actions else default.actions,
        plugins=_plugins_in(file.tiers) if file.tiers is not None else default.plugins,
        queue_depth=file.queue_depth_per_action or {},
        usage_db=_usage_db(file.usage_db_config),
        search_budgets=_budgets(file.scenario_search_budgets, "config.scenarioSearchBudgets"),
    )


def _plugins_in(tiers: Iterable[kai.Tier]) -> tuple[Plugin, ...]:
    return tuple(Plugin(p.name, p.arguments or {}) for tier in tiers for p in tier.plugins or ())


def _usage_db(record: kai.UsageDB | None) -> dict[str, str]:
    if record is None:
        return {}
    params = record.usage_params or kai.UsageParams()
    named = {
        "clientType": record.client_type,
        "halfLifePeriod": params.half_life_period,
        "windowSize": params.window_size,
        "windowType": params.window_type,
        "stalenessPeriod": params.staleness_period,
        "fetchInterval": params.fetch_interval,
    }
    return {name: text for name, text in named.items() if text is not None}


def _budgets(record: kai.SearchBudgets | None, path: str) -> dict[str, float]:
    """Return seconds under the dotted names of the API; 0 is no limit."""
    if record is None:
        return {}
    texts = {
        "maxJobSearchDuration": record.max_job_search_duration,
        "minJobSearchDuration": record.min_job_search_duration,
        **{f"maxActionSearchDuration.{k}": v for k, v in (record.max_action_search_duration or {}).items()},
        **{f"maxGeneratorSearchDuration.{k}": v for k, v in (record.max_generator_search_duration or {}).items()},
    }
    return {name: s for name, text in texts.items() if (s := seconds(text, f"{path}.{name}")) is not None}


@dataclass(frozen=True, slots=True)
class SchedulerObjects:
    """The objects from which an operator, and so this module, makes a scheduler's configuration."""

    shards: tuple[kai.SchedulingShard, ...] = ()
    configs: tuple[kai.Config, ...] = ()
    config_maps: tuple[kai.ConfigMap, ...] = ()
    deployments: tuple[base.Observed, ...] = ()


@dataclass(slots=True)
class _Sources:
    """What was found for one shard, and from which objects."""

    name: str
    spec: kai.ShardSpec
    flags: dict[str, str] = field(default_factory=dict)
    file: kai.SchedulerConfig | None = None
    version: str = ""
    named: list[str] = field(default_factory=list)


Report = Callable[[str, FieldError], None]


def shards_from_objects(objects: SchedulerObjects, report: Report) -> tuple[Shard, ...]:
    """Return one shard per SchedulingShard, or the default one where none was read.

    ``report`` is told of a setting that means nothing; the shard then counts with its default.
    """
    found = [_Sources(s.metadata.name, s.spec or kai.ShardSpec(), named=[f"SchedulingShard/{s.metadata.name}"])
             for s in sorted(objects.shards, key=lambda s: s.metadata.name)]  # fmt: skip
    sources = found or [_Sources("default", kai.ShardSpec())]
    for source in sources:
        _add_config(source, objects.configs)
        _add_deployment(source, objects.deployments, alone=len(sources) == 1)
        _add_config_map(source, objects.config_maps)
    return tuple(_shard(source, report) for source in sources)


def _add_config(source: _Sources, configs: tuple[kai.Config, ...]) -> None:
    """Flags as the operator makes them: from Config and shard, then the shard's own ``args``."""
    spec = source.spec
    for config in configs:
        given = (config.spec.global_ if config.spec else None) or kai.GlobalConfig()
        binder = (config.spec.binder if config.spec else None) or kai.BinderConfig()
        reservation = binder.resource_reservation or kai.ResourceReservation()
        named = {
            "scheduler-name": given.scheduler_name,
            "nodepool-label-key": given.node_pool_label_key,
            "queue-label-key": given.queue_label_key,
            "resource-reservation-app-label": reservation.app_label,
        }
        source.flags |= {name: text for name, text in named.items() if text is not None}
        source.named.append(f"Config/{config.metadata.name}")
    source.flags["partition-label-value"] = spec.partition_label_value or ""
    source.flags |= spec.args or {}


def _add_deployment(source: _Sources, deployments: tuple[base.Observed, ...], *, alone: bool) -> None:
    """The scheduler's own arguments count more than what they should have been made from."""
    wanted = f"{_scheduler_name(source)}-{source.name}"
    schedulers = [(d, c) for d in deployments for c in _containers(d) if _is_scheduler(c)]
    named = [(d, c) for d, c in schedulers if d.metadata.name == wanted]
    chosen = named or (schedulers if alone and len(schedulers) == 1 else [])
    for deployment, container in chosen[:1]:
        source.flags |= _flags(container.get("args") or ())
        source.version = _tag(str(container.get("image") or ""))
        source.named.append(f"Deployment/{deployment.metadata.namespace}/{deployment.metadata.name}")


def _scheduler_name(source: _Sources) -> str:
    return source.flags.get("scheduler-name") or SchedulerParams().scheduler_name


def _containers(deployment: base.Observed) -> list[dict[str, Any]]:
    template = deployment.fields.get("spec", {}).get("template", {}).get("spec", {})
    return [c for c in template.get("containers", ()) if isinstance(c, dict)]


def _is_scheduler(container: Mapping[str, Any]) -> bool:
    """KAI's scheduler by the last part of its image; Kubernetes' own has another one."""
    repository = str(container.get("image") or "").partition("@")[0].rpartition("/")[2].partition(":")[0]
    return repository == "scheduler"


def _tag(image: str) -> str:
    return image.partition("@")[0].rpartition("/")[2].partition(":")[2]


def _flags(args: Iterable[str]) -> dict[str, str]:
    pairs = (arg.removeprefix("--").partition("=") for arg in kept_scheduler_args(args))
    return {name: text for name, _, text in pairs}


def _add_config_map(source: _Sources, config_maps: tuple[kai.ConfigMap, ...]) -> None:
    wanted = f"{_scheduler_name(source)}-{source.name}"
    for config_map in config_maps:
        if config_map.metadata.name == wanted and (file := config_map.scheduler_config) is not None:
            source.file = file
            source.named.append(f"ConfigMap/{config_map.metadata.namespace}/{wanted}")
            return


def _shard(source: _Sources, report: Report) -> Shard:
    file, spec = source.file, source.spec
    config = _or_default(source, report, lambda: _config_from_spec(spec) if file is None else _config_from_file(file))
    config = replace(config, params=_params(source, report))
    return Shard(source.name, config, tuple(source.named), source.version)


def _or_default(source: _Sources, report: Report, make: Callable[[], SchedulerConfig]) -> SchedulerConfig:
    try:
        return make()
    except FieldError as err:
        report(f"SchedulingShard/{source.name}", err)
        return _config_from_spec(kai.ShardSpec())


def _config_from_spec(spec: kai.ShardSpec) -> SchedulerConfig:
    """The configuration that the operator writes for a shard."""
    placement = spec.placement_strategy or kai.PlacementStrategy()
    gpu, cpu = placement.gpu or "binpack", placement.cpu or "binpack"
    return SchedulerConfig(
        actions=_merged(_ACTION_PRIORITIES, {"consolidation": "spread" not in {gpu, cpu}}, spec.actions),
        plugins=_plugins(spec, gpu, cpu),
        queue_depth=spec.queue_depth_per_action or {},
        usage_db=_usage_db(spec.usage_db_config),
        search_budgets=_BUDGETS | _budgets(spec.scenario_search_budgets, "spec.scenarioSearchBudgets"),
    )


def _plugins(spec: kai.ShardSpec, gpu: str, cpu: str) -> tuple[Plugin, ...]:
    packs = gpu == "binpack"
    enabled = {"gpusharingorder": packs, "gpupack": packs, "gpuspread": not packs}
    arguments = _plugin_arguments(spec, gpu, cpu)
    for name, override in (spec.plugins or {}).items():
        if override.arguments is not None:
            arguments[name] = override.arguments
    names = _merged(_PLUGIN_PRIORITIES, enabled, spec.plugins)
    return tuple(Plugin(name, arguments.get(name, {})) for name in names)


def _plugin_arguments(spec: kai.ShardSpec, gpu: str, cpu: str) -> dict[str, dict[str, str]]:
    minimum = spec.min_runtime or kai.MinRuntime()
    runtimes = {
        "defaultPreemptMinRuntime": minimum.preempt_min_runtime,
        "defaultReclaimMinRuntime": minimum.reclaim_min_runtime,
    }
    return {
        "nodeplacement": {"gpu": gpu, "cpu": cpu},
        "proportion": {} if spec.k_value is None else {"kValue": f"{spec.k_value:g}"},
        "minruntime": {name: text for name, text in runtimes.items() if text is not None},
    }


def _merged(
    priorities: Mapping[str, int], enabled: Mapping[str, bool], overrides: Mapping[str, kai.Override] | None
) -> tuple[str, ...]:
    """Return the names that are on, highest priority first, equals by name; a new name is on with priority 0."""
    rank = dict(priorities)
    on = {name: enabled.get(name, True) for name in priorities}
    for name, override in (overrides or {}).items():
        rank[name] = override.priority if override.priority is not None else rank.get(name, 0)
        on[name] = override.enabled if override.enabled is not None else on.get(name, True)
    return tuple(sorted((n for n in rank if on[n]), key=lambda n: (-rank[n], n)))


def _text(_flag: str, text: str) -> str:
    return text


def _params(source: _Sources, report: Report) -> SchedulerParams:
    given: dict[str, Any] = {}
    for flag, (name, parse) in _FLAGS.items():
        if flag not in source.flags:
            continue
        try:
            given[name] = parse(flag, source.flags[flag])
        except FieldError as err:
            report(f"SchedulingShard/{source.name}", err)
    return replace(SchedulerParams(), **given)


def _switch(flag: str, text: str) -> bool:
    """Go's words for true and false."""
    if text in {"1", "t", "T", "true", "TRUE", "True"}:
        return True
    if text in {"0", "f", "F", "false", "FALSE", "False"}:
        return False
    raise FieldError(f"args.{flag}", f"neither true nor false: {text[:40]!r}")


def _seconds(flag: str, text: str) -> float:
    try:
        return quantity.seconds(text)
    except quantity.QuantityError as err:
        raise FieldError(f"args.{flag}", str(err)) from err


def _integer(flag: str, text: str) -> int:
    try:
        return int(text)
    except ValueError as err:
        raise FieldError(f"args.{flag}", f"not a number: {text[:40]!r}") from err


_FLAGS: dict[str, tuple[str, Callable[[str, str], Any]]] = {
    "scheduler-name": ("scheduler_name", _text),
    "nodepool-label-key": ("node_pool_label_key", _text),
    "partition-label-value": ("node_pool_label_value", _text),
    "queue-label-key": ("queue_label_key", _text),
    "cpu-worker-node-label-key": ("cpu_worker_label_key", _text),
    "gpu-worker-node-label-key": ("gpu_worker_label_key", _text),
    "mig-worker-node-label-key": ("mig_worker_label_key", _text),
    "resource-reservation-app-label": ("reservation_app_label", _text),
    "restrict-node-scheduling": ("restrict_node_scheduling", _switch),
    "schedule-csi-storage": ("schedule_csi_storage", _switch),
    "use-scheduling-signatures": ("use_scheduling_signatures", _switch),
    "full-hierarchy-fairness": ("full_hierarchy_fairness", _switch),
    "allow-consolidating-reclaim": ("allow_consolidating_reclaim", _switch),
    "detailed-fit-errors": ("detailed_fit_errors", _switch),
    "update-pod-eviction-condition": ("update_pod_eviction_condition", _switch),
    "default-staleness-grace-period": ("staleness_grace", _seconds),
    "schedule-period": ("schedule_period", _seconds),
    "stuck-in-releasing-threshold": ("stuck_in_releasing", _seconds),
    "max-consolidation-preemptees": ("max_consolidation_preemptees", _integer),
}
"""Flag -> field of ``SchedulerParams`` and how its text is read."""
