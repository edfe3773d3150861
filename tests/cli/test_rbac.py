"""The role that the rbac command prints can be applied as it is and can only read."""

from __future__ import annotations

from io import StringIO

import yaml
from django.core.management import call_command


def _rules(*args: str) -> list[dict[str, list[str]]]:
    out = StringIO()
    call_command("rbac", *args, stdout=out)
    role = yaml.safe_load(out.getvalue())
    assert role["kind"] == "ClusterRole"
    rules: list[dict[str, list[str]]] = role["rules"]
    return rules


def test_the_role_reads_and_nothing_more() -> None:
    rules = _rules()
    assert {verb for rule in rules for verb in rule["verbs"]} == {"get", "list"}
    named = {resource for rule in rules for resource in rule["resources"]}
    assert {"nodes", "pods", "podgroups", "queues"} <= named
    assert named.isdisjoint({"secrets", "*"})


def test_configmaps_can_be_left_out() -> None:
    assert any("configmaps" in rule["resources"] for rule in _rules())
    assert not any("configmaps" in rule["resources"] for rule in _rules("--no-configmaps"))
