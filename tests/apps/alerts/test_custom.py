"""Rules that people make: which gangs they find, since when, and one finding for each cause."""

from __future__ import annotations

from typing import Any

import pytest

from apps.alerts.rules.custom import condition_of, custom_find
from tests.apps.alerts.pasts import Past, since


@pytest.fixture
def past() -> Past:
    """Return a past with gangs of four kinds at minute 60."""
    past = Past()
    past.says(past.gang("team-a/big", queue="q", gpus=64, created=0), "GPUS_BUSY", 1)
    past.says(past.gang("team-b/small", queue="r", gpus=1, created=30), "QUEUE_LIMIT", 31, who="queue_admin")
    past.says(past.gang("team-b/runs", queue="r", gpus=8, created=0), "RUNNING", 1)
    past.says(past.gang("team-a/starts", queue="q", gpus=8, created=50), "IMAGE_PULL", 51)
    return past


@pytest.mark.parametrize(
    "condition, gangs",
    [
        ({}, [1, 2]),
        ({"verdicts": ["POLICY"]}, [2]),
        ({"codes": ["GPUS_BUSY", "QUEUE_LIMIT"]}, [1, 2]),
        ({"who": ["queue_admin"]}, [2]),
        ({"gpus_least": 2}, [1]),
        ({"gpus_most": 2}, [2]),
        ({"age_seconds": 3600}, [1]),
        ({"age_seconds": 3601}, []),
        ({"verdicts": ["STARTING"]}, [4]),
        ({"codes": ["RUNNING"]}, [3]),
        ({"verdicts": ["POLICY"], "codes": ["GPUS_BUSY"]}, []),
    ],
)
def test_a_condition_finds_the_gangs_that_meet_all_of_it(
    past: Past, condition: dict[str, Any], gangs: list[int]
) -> None:
    found = custom_find(past.facts(60), condition_of(condition))
    assert sorted(gang for item in found for gang in item.gangs) == gangs


def test_a_finding_begins_when_the_gang_was_old_enough(past: Past) -> None:
    (found,) = custom_find(past.facts(60), condition_of({"codes": ["GPUS_BUSY"], "age_seconds": 1800}))
    assert since(found) == 30


def test_waiting_goes_on_through_several_reasons() -> None:
    past = Past()
    gang = past.gang("a", created=0)
    past.says(gang, "RUNNING", 0, 10)
    past.says(gang, "RECLAIMED", 10, 20)
    past.says(gang, "QUEUE_LIMIT", 20, 40)
    past.says(gang, "GPUS_BUSY", 40)
    assert custom_find(past.facts(69), condition_of({"age_seconds": 3600})) == []
    (found,) = custom_find(past.facts(70), condition_of({"age_seconds": 3600}))
    assert since(found) == 70


def test_gangs_of_one_cause_are_one_finding() -> None:
    past = Past()
    for n in range(500):
        past.says(past.gang(f"g{n}", gpus=2), "QUEUE_LIMIT", n % 7, subject="Queue/q")
    (found,) = custom_find(past.facts(60), condition_of({}))
    assert (found.signature, len(found.gangs), found.gpus) == ("POLICY|QUEUE_LIMIT|Queue/q", 500, 1000)
    assert since(found) == 0
