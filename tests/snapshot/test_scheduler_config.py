"""How the scheduler's configuration is put together, and from which objects."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.model.config import DEFAULT_ACTIONS, SchedulerConfig, SchedulerParams, Shard
from gangdash.snapshot.archive import load_bytes, snapshot_of
from tests.kube import raw


def _snapshot(content: dict[str, Any]) -> ClusterSnapshot:
    return snapshot_of(load_bytes(json.dumps(content).encode(), name="file"))


def _shard(*items: raw.Object) -> Shard:
    (shard,) = _snapshot(raw.dump(*items)).shards
    return shard


def _kai_config(**spec: Any) -> raw.Object:
    return raw.thing("kai.scheduler/v1", "Config", "kai-config", spec=spec)


def _arguments(config: SchedulerConfig, name: str) -> dict[str, str]:
    plugin = config.plugin(name)
    assert plugin is not None
    return dict(plugin.arguments)


def test_scheduler_snapshot_says_it_all() -> None:
    case = raw.scheduler_snapshot() | {
        "config": {
            "actions": "allocate,  preempt", "queueDepthPerAction": {"allocate": 3},
            "tiers": [{"plugins": [{"name": "predicates"}]}, {"plugins": [{"name": "numa", "arguments": {"a": "b"}}]}],
            "scenarioSearchBudgets": {"maxJobSearchDuration": "4m", "maxGeneratorSearchDuration": {"default": "30s"}},
            "usageDBConfig": {"clientType": "prometheus", "usageParams": {"halfLifePeriod": "168h"}},
        },
        "schedulerParams": {
            "schedulerName": "other", "partitionParams": {"NodePoolLabelKey": "pool", "NodePoolLabelValue": "blue"},
            "fullHierarchyFairness": True, "schedulePeriod": 5_000_000_000, "scheduleCSIStorage": True,
            "globalDefaultStalenessGracePeriod": -1, "maxNumberConsolidationPreemptees": 4, "queueLabelKey": "q",
        },
    }  # fmt: skip
    (shard,) = _snapshot(case).shards
    params = shard.config.params

    assert (shard.name, shard.source) == ("blue", ("config", "schedulerParams"))
    assert shard.config.actions == ("allocate", "preempt")
    assert [p.name for p in shard.config.plugins] == ["predicates", "numa"]
    assert _arguments(shard.config, "numa") == {"a": "b"}
    assert shard.config.queue_depth == {"allocate": 3}
    assert shard.config.search_budgets == {"maxJobSearchDuration": 240, "maxGeneratorSearchDuration.default": 30}
    assert shard.config.usage_db == {"clientType": "prometheus", "halfLifePeriod": "168h"}
    assert (params.scheduler_name, params.node_pool_label_key, params.queue_label_key) == ("other", "pool", "q")
    assert (params.schedule_period, params.schedule_csi_storage, params.full_hierarchy_fairness) == (5, True, True)
    assert params.staleness_grace < 0
    assert params.max_consolidation_preemptees == 4


def test_flag_that_a_scheduler_snapshot_leaves_out_is_off_not_default() -> None:
    params = _snapshot(raw.scheduler_snapshot()).shards[0].config.params

    assert not params.full_hierarchy_fairness
    assert not params.use_scheduling_signatures
    assert params.max_consolidation_preemptees == 0


def test_no_object_gives_the_defaults() -> None:
    shard = _shard(raw.node("n"))

    assert (shard.name, shard.source, shard.version) == ("default", (), "")
    assert shard.config.actions == DEFAULT_ACTIONS
    assert shard.config.params == SchedulerParams()
    assert _arguments(shard.config, "nodeplacement") == {"gpu": "binpack", "cpu": "binpack"}
    assert shard.config.search_budgets["maxJobSearchDuration"] == 240


def test_shard_is_turned_into_what_the_operator_writes() -> None:
    shard = _shard(raw.shard(
        "blue", partitionLabelValue="blue", placementStrategy={"gpu": "spread"}, kValue=0.5,
        minRuntime={"reclaimMinRuntime": "10m"}, queueDepthPerAction={"reclaim": 7},
        scenarioSearchBudgets={"maxJobSearchDuration": "0s"},
        plugins={"numa": {"enabled": True}, "elastic": {"enabled": False}, "ray": {"priority": 5000}},
        actions={"preempt": {"enabled": False}, "reclaim": {"priority": 600}},
    ))  # fmt: skip
    names = [p.name for p in shard.config.plugins]

    assert shard.config.actions == ("reclaim", "allocate", "stalegangeviction")
    assert names[:2] == ["ray", "predicates"]
    assert names[-1] == "numa"
    assert not {"elastic", "gpupack", "gpusharingorder"} & set(names)
    assert "gpuspread" in names
    assert _arguments(shard.config, "nodeplacement") == {"gpu": "spread", "cpu": "binpack"}
    assert _arguments(shard.config, "proportion") == {"kValue": "0.5"}
    assert _arguments(shard.config, "minruntime") == {"defaultReclaimMinRuntime": "10m"}
    assert shard.config.queue_depth == {"reclaim": 7}
    assert shard.config.search_budgets["maxJobSearchDuration"] == 0
    assert shard.config.search_budgets["maxGeneratorSearchDuration.NodeLocalGreedy"] == 30
    assert shard.config.params.node_pool_label_value == "blue"


def test_consolidation_may_be_switched_on_again_for_spread() -> None:
    shard = _shard(raw.shard("s", placementStrategy={"cpu": "spread"}, actions={"consolidation": {"enabled": True}}))

    assert shard.config.actions == DEFAULT_ACTIONS


def test_arguments_of_the_deployment_count_more_than_shard_and_config() -> None:
    config = _kai_config(
        **{"global": {"schedulerName": "kai", "queueLabelKey": "config-q", "nodePoolLabelKey": "pool"}}
    )
    spec = raw.shard("s", args={"queue-label-key": "shard-q", "schedule-period": "2s", "detailed-fit-errors": "true"})
    running = raw.scheduler_deployment("kai-s", "--schedule-period=3s", "--full-hierarchy-fairness=false")
    shard = _shard(config, spec, running)
    params = shard.config.params

    assert params.scheduler_name == "kai"
    assert (params.node_pool_label_key, params.queue_label_key) == ("pool", "shard-q")
    assert (params.schedule_period, params.detailed_fit_errors, params.full_hierarchy_fairness) == (3, True, False)
    assert shard.version == "v0.17.1"
    assert shard.source == ("SchedulingShard/s", "Config/kai-config", "Deployment/kai-scheduler/kai-s")


def test_configuration_file_counts_more_than_the_shard() -> None:
    text = "actions: allocate\ntiers:\n- plugins:\n  - name: predicates\n"
    file = raw.config_map("kai-scheduler-s", "kai-scheduler", config_yaml=text)
    shard = _shard(raw.shard("s", placementStrategy={"gpu": "spread"}), file)

    assert shard.config.actions == ("allocate",)
    assert [p.name for p in shard.config.plugins] == ["predicates"]
    assert "ConfigMap/kai-scheduler/kai-scheduler-s" in shard.source


def test_several_shards_have_each_their_own() -> None:
    snapshot = _snapshot(raw.dump(
        raw.shard("green", partitionLabelValue="green"), raw.shard("blue", partitionLabelValue="blue"),
        raw.scheduler_deployment("kai-scheduler-blue", "--schedule-period=2s", image="r/scheduler:v1@sha256:ab"),
        raw.scheduler_deployment("kai-scheduler-green", "--schedule-period=4s", image="host:5000/kai/scheduler"),
    ))  # fmt: skip

    assert [(s.name, s.config.params.schedule_period, s.version) for s in snapshot.shards] == [
        ("blue", 2, "v1"), ("green", 4, ""),
    ]  # fmt: skip


@pytest.mark.parametrize("name,found", [("scheduler", True), ("kai-scheduler-default", True)])
def test_lone_scheduler_is_the_shards_whatever_its_name(name: str, found: bool) -> None:
    foreign = raw.scheduler_deployment("kube-scheduler", image="registry.k8s.io/kube-scheduler:v1.35.0")
    shard = _shard(raw.shard("default"), raw.scheduler_deployment(name, "--schedule-period=9s"), foreign)

    assert (shard.config.params.schedule_period == 9) is found
    assert shard.version == "v0.17.1"


def test_kubernetes_own_scheduler_is_not_taken_for_kais() -> None:
    foreign = raw.scheduler_deployment("kube-scheduler", image="registry.k8s.io/kube-scheduler:v1.35.0")

    assert _shard(foreign).version == ""


@pytest.mark.parametrize(
    "args,field",
    [({"schedule-period": "often"}, "args.schedule-period"),
     ({"detailed-fit-errors": "maybe"}, "args.detailed-fit-errors"),
     ({"max-consolidation-preemptees": "x"}, "args.max-consolidation-preemptees")],
)  # fmt: skip
def test_flag_that_means_nothing_is_named_and_default(args: dict[str, str], field: str) -> None:
    snapshot = _snapshot(raw.dump(raw.shard("s", args=args, partitionLabelValue="blue")))
    params = snapshot.shards[0].config.params

    assert [(o.object, o.field) for o in snapshot.oddities] == [("SchedulingShard/s", field)]
    assert params == SchedulerParams(node_pool_label_value="blue")


def test_budget_of_a_shard_that_means_nothing_is_named_and_default() -> None:
    snapshot = _snapshot(raw.dump(raw.shard("s", scenarioSearchBudgets={"maxJobSearchDuration": "long"})))

    assert [o.field for o in snapshot.oddities] == ["spec.scenarioSearchBudgets.maxJobSearchDuration"]
    assert snapshot.shards[0].config.actions == DEFAULT_ACTIONS
