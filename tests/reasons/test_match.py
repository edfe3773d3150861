"""The cluster's own words beside ours: the same, less, something else, nothing, or out of date."""

from __future__ import annotations

import pytest

from gangdash.engine.verdict import Finding, Match, ReasonCode, SchedulerWords
from gangdash.reasons import match_words

GPU_TEXT = (
    "PodSchedulingErrors: Resources were found for 1 pods while 2 are required for gang scheduling. Additional pods "
    "cannot be scheduled due to: no nodes with enough resources were found: "
    "4 node(s) didn't have enough resources: GPUs.."
)
LIMIT_TEXT = (
    "OverLimit: Team A quota has reached the allowable limit of GPUs. Limit is 8 GPUs, currently 8 GPUs allocated"
)


def words(text: str, *, outdated_by: float | None = None, reasons: tuple[str, ...] = ()) -> SchedulerWords:
    return SchedulerWords(text, "PodGroup/a/b", 10.0, reasons, outdated_by)


@pytest.mark.parametrize(
    "code, text, match",
    [
        (ReasonCode.GPUS_BUSY, GPU_TEXT, Match.AGREE),
        (ReasonCode.QUEUE_LIMIT, LIMIT_TEXT, Match.AGREE),
        (ReasonCode.DOMAIN_BUSY, GPU_TEXT, Match.LESS_SPECIFIC),
        (ReasonCode.QUEUE_NOT_LEAF, "Unable to schedule podgroup", Match.LESS_SPECIFIC),
        (
            ReasonCode.MEMBERS_MISSING,
            "Job is not ready for scheduling. Waiting for 3 pods, currently 2 exist",
            Match.AGREE,
        ),
        (ReasonCode.PLACEABLE_NOT_PLACED, LIMIT_TEXT, Match.DISAGREE),
        (ReasonCode.GPUS_BUSY, "0/4 nodes are available: 4 Insufficient nvidia.com/gpu.", Match.AGREE),
        (ReasonCode.RESOURCE_SHORT, "0/4 nodes are available: 4 Insufficient cpu.", Match.AGREE),
        (ReasonCode.RUNNING, GPU_TEXT, Match.STALE),
    ],
)
def test_words_are_matched_by_meaning(code: ReasonCode, text: str, match: Match) -> None:
    assert match_words(Finding(code), (), words(text)) is match


def test_no_words_are_silence() -> None:
    assert match_words(Finding(ReasonCode.GPUS_BUSY), (), None) is Match.SILENT


def test_words_outdated_by_a_change_are_stale() -> None:
    assert match_words(Finding(ReasonCode.PLACEABLE_NOT_PLACED), (), words(LIMIT_TEXT, outdated_by=20.0)) is Match.STALE


def test_words_that_name_a_second_cause_say_less() -> None:
    also = (Finding(ReasonCode.QUEUE_LIMIT),)
    assert match_words(Finding(ReasonCode.DOMAIN_TOO_SMALL), also, words(LIMIT_TEXT)) is Match.LESS_SPECIFIC


def test_structured_reasons_count_where_the_text_is_general() -> None:
    told = words("Unable to schedule podgroup", reasons=(LIMIT_TEXT,))
    assert match_words(Finding(ReasonCode.QUEUE_LIMIT), (), told) is Match.AGREE
