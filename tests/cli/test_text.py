"""The text of one explanation: what needs, what is met, what would start it and what was not tried."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gangdash.documents.text import explanation_text
from tests.engine.builders import Cluster
from tests.explain.helpers import explain


def lines() -> list[str]:
    cluster = Cluster()
    cluster.node("n1", 8)
    cluster.node("n2", 8)
    cluster.queue("q", 4, 4)
    cluster.gang("g", 1, 6)
    return explanation_text(explain(cluster)).splitlines()


def test_what_binds_and_what_is_met_stand_apart() -> None:
    found = lines()
    assert "    needs     queue.limit.gpu q: needs 6 GPUs, has 4 GPUs [Queue/q limit]" in found
    assert "    met       node.gpu n1: needs 6 GPUs, has 8 GPUs [free on the best node]" in found


@pytest.mark.parametrize("count, words", [(1, "1 more change was"), (3, "3 more changes were")])
def test_changes_that_were_not_tried_are_counted(count: int, words: str) -> None:
    cluster = Cluster()
    cluster.node("n1", 8)
    cluster.gang("g", 1, 9)
    text = explanation_text(replace(explain(cluster), fixes_untried=count))
    assert f"{words} not tried: the budget of re-runs ended" in text
