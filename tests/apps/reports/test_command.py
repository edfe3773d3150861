"""`manage.py report`: each form, to the terminal or a file, and one line for whatever is wrong."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError

from apps.clusters.models import Cluster
from apps.delivery.models import Delivery
from apps.reports.models import Report
from tests.apps.reports.conftest import Maker


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("report", *arguments, stdout=out)
    return out.getvalue()


def test_it_prints_one_and_keeps_nothing(cluster: Cluster, maker: Maker) -> None:
    text = run("--cluster", "fjord-1", "--range", "24h", "--format", "md")
    assert text.startswith("# fjord-1: health report\n")
    assert (maker.asked[0]["end"] - maker.asked[0]["start"]).total_seconds() == 24 * 3600
    assert not Report.objects.exists()
    assert not Delivery.objects.exists()


@pytest.mark.parametrize(
    "form, begins", [("html", "<!doctype html>"), ("csv", "cluster,start,end"), ("md", "# fjord-1")]
)
def test_each_form(cluster: Cluster, maker: Maker, form: str, begins: str) -> None:
    assert run("--cluster", "fjord-1", "--format", form).startswith(begins)


def test_json_in_the_zone_that_was_asked_for(cluster: Cluster, maker: Maker) -> None:
    written = json.loads(run("--cluster", "fjord-1", "--format", "json", "--zone", "Asia/Tokyo"))
    assert (written["cluster"], written["zone"]) == ("fjord-1", "Asia/Tokyo")


def test_a_file_holds_the_same_bytes(cluster: Cluster, maker: Maker, tmp_path: Path) -> None:
    place = tmp_path / "report.csv"
    assert run("--cluster", "fjord-1", "--format", "csv", "--output", str(place)) == ""
    assert place.read_bytes().count(b"\r\n") > 50
    assert b"\r\r" not in place.read_bytes()


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("--cluster", "elsewhere"), "There is no cluster 'elsewhere'; known: fjord-1"),
        (("--cluster", "fjord-1", "--range", "yesterday"), "'yesterday' is no range"),
        (("--cluster", "fjord-1", "--zone", "Mars/Olympus"), "'Mars/Olympus' is no time zone"),
        (("--cluster", "fjord-1", "--output", "/nowhere/at/all"), "/nowhere/at/all: cannot be written: No such file"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    cluster: Cluster, maker: Maker, arguments: tuple[str, ...], words: str
) -> None:
    with pytest.raises(CommandError) as refused:
        run(*arguments)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)
    assert refused.value.returncode == 255


@pytest.mark.parametrize(
    "arguments, words",
    [(("--cluster", "fjord-1", "--format", "pdf"), "invalid choice: 'pdf'"), (("--range", "24h"), "--cluster")],
)
def test_what_is_not_understood_is_told_by_the_parser(arguments: tuple[str, ...], words: str) -> None:
    with pytest.raises(CommandError, match=words):
        run(*arguments)


def test_a_database_without_tables_is_said_so(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(**_options: Any) -> None:
        raise OperationalError("no such table: clusters_cluster")

    monkeypatch.setattr(Cluster.objects, "filter", broken)
    with pytest.raises(CommandError, match="The database cannot be read: no such table"):
        run("--cluster", "fjord-1")
