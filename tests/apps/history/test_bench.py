"""The measurement of polls: it polls a cluster of the size asked for and says what that cost."""

from __future__ import annotations

import re

import pytest
from django.core.management import CommandError, call_command

from gangdash.simulator.bulk import Size, bulk_objects, changed_gangs


@pytest.mark.parametrize("pods, gangs", [(10, 2), (7, 3), (5, 5)])
def test_a_generated_cluster_has_the_size_asked_for(pods: int, gangs: int) -> None:
    found = [obj["kind"] for obj in bulk_objects(Size(4, pods, gangs))]
    assert (found.count("Node"), found.count("Pod"), found.count("PodGroup")) == (4, pods, gangs)


def test_a_change_touches_one_gang_in_so_many_and_makes_none_anew() -> None:
    size = Size(4, 40, 20)
    before = {(o["kind"], o["metadata"]["name"]): o for o in bulk_objects(size)}
    after = {(o["kind"], o["metadata"]["name"]): o for o in changed_gangs(size, share=10)}
    changed = {key for key, obj in after.items() if before[key] != obj}
    assert {kind for kind, _name in changed} == {"Pod"}
    assert len(changed) == 40 // 10


@pytest.mark.slow
def test_the_command_prints_one_line_a_poll(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("bench", poll=True, nodes=5, pods=20, gangs=20)
    lines = [re.split(r" {2,}", line) for line in capsys.readouterr().out.splitlines()]
    rows = {line[0]: int(line[-1].replace(",", "")) for line in lines[1:]}
    assert list(rows) == ["first", "unchanged", "a tenth changed"]
    assert rows["first"] >= 45
    assert rows["unchanged"] == 0
    assert rows["a tenth changed"] == 2


@pytest.mark.parametrize("size", [{"nodes": 0}, {"gangs": 0}, {"pods": 1}])
def test_a_size_that_cannot_be_is_refused(size: dict[str, int]) -> None:
    with pytest.raises(CommandError, match="begin at 1"):
        call_command("bench", poll=True, **size)


def test_nothing_to_measure_is_an_error() -> None:
    with pytest.raises(CommandError, match="--poll"):
        call_command("bench")
