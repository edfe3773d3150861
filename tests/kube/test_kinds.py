"""The table of kinds is whole, agrees with what servers serve, and asks for nothing but reading."""

from __future__ import annotations

import pytest

from gangdash.kube import kinds, rbac, yaml
from gangdash.kube.allowed import kept_annotations, kept_pod_args, kept_scheduler_args
from gangdash.simulator.kinds import KINDS as SERVED


def test_names_and_snapshot_keys_are_unique() -> None:
    keys = [kind.in_snapshot for kind in kinds.KINDS if kind.in_snapshot]

    assert len({kind.name for kind in kinds.KINDS}) == len(kinds.KINDS)
    assert len(set(keys)) == len(keys) == 17


@pytest.mark.parametrize("kind", kinds.live(), ids=lambda kind: kind.name)
def test_live_kind_is_served_where_the_table_says(kind: kinds.Kind) -> None:
    served = next(s for s in SERVED if s.kind == kind.name and s.group == kind.group)

    assert (served.plural, served.namespaced) == (kind.plural, kind.namespaced)
    assert kind.versions[0] in served.versions


def test_what_gangs_are_made_of_is_read_last() -> None:
    names = [kind.name for kind in kinds.live()]

    assert set(names[-4:]) == {"Node", "Pod", "PodGroup", "Queue"}
    assert names.index("BindRequest") < names.index("Pod")


def test_both_event_apis_are_one_kind() -> None:
    assert kinds.find("events.k8s.io/v1", "Event") is kinds.find("v1", "Event") is kinds.by_name()["Event"]


def test_kind_of_another_group_or_version_is_not_taken_for_ours() -> None:
    assert kinds.find("scheduling.volcano.sh/v1beta1", "PodGroup") is None
    assert kinds.find("scheduling.run.ai/v9", "Queue") is None


def test_observed_kinds_keep_no_free_text_of_containers() -> None:
    paths = {path for kind in kinds.KINDS if kind.name != "Deployment" for path in kind.paths}

    assert not [
        p for p in paths if p.rpartition(".")[2] in {"env", "envFrom", "args", "command", "data", "annotations"}
    ]


@pytest.mark.parametrize("config_maps", [True, False])
def test_role_reads_and_never_a_secret(config_maps: bool) -> None:
    role = yaml.load(rbac.cluster_role_yaml(config_maps=config_maps))
    resources = {f"{r}.{rule['apiGroups'][0]}".rstrip(".") for rule in role["rules"] for r in rule["resources"]}

    assert {verb for rule in role["rules"] for verb in rule["verbs"]} <= {"get", "list", "watch"}
    assert "secrets" not in resources
    assert not [r for r in resources if "*" in r]
    assert ("configmaps" in resources) is config_maps
    assert {"pods", "nodes", "podgroups.scheduling.run.ai", "queues.scheduling.run.ai"} <= resources


def test_annotations_are_kept_by_name() -> None:
    given = {
        "pod-group-name": "g",
        "nvidia.com/mig-1g.5gb": "1",
        "kubectl.kubernetes.io/last-applied-configuration": "x",
    }

    assert kept_annotations(given) == {"pod-group-name": "g", "nvidia.com/mig-1g.5gb": "1"}
    assert kept_annotations({"vault.hashicorp.com/secret": "x"}) is None


def test_arguments_are_kept_by_name() -> None:
    args = (
        "--schedule-period",
        "5s",
        "--token=abc",
        "--leader-elect",
        "--v=3",
        "positional",
        "--partition-label-value=",
    )

    assert kept_scheduler_args(args) == ["--schedule-period=5s", "--leader-elect=true", "--partition-label-value="]
    assert kept_pod_args(("--podcliques=a:1", "--password=x")) == ("--podcliques=a:1",)
