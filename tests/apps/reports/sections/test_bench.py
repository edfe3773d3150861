"""The measurement of a report: it makes a week, reports on it in another process, and refuses what makes no week."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command


@pytest.mark.slow
def test_a_small_week_is_made_and_reported_on() -> None:
    out = StringIO()
    call_command("bench_report", "--rows", "600", "--gangs", "20", stdout=out)
    header, cells = (line.split() for line in out.getvalue().splitlines())
    assert header[:4] == ["rows", "gangs", "CPU", "s"]
    assert cells[:2] == ["600", "20"]
    assert all(float(cell) > 0 for cell in cells[2:])


@pytest.mark.parametrize("gangs, rows", [("0", "5"), ("6", "5")])
def test_what_makes_no_week_is_refused(gangs: str, rows: str) -> None:
    with pytest.raises(CommandError, match="--gangs begins at 1"):
        call_command("bench_report", "--rows", rows, "--gangs", gangs)
