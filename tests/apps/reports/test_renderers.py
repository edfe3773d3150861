"""What the four forms say: golden texts, every number in every form, and names that cannot break out of any."""

from __future__ import annotations

import csv
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from apps.reports import words
from apps.reports.charts import FAMILIES
from apps.reports.choices import ReportForm
from apps.reports.content import Content, Figure, Known, content_decode
from apps.reports.renderers import file_name, mail, markdown, render, table
from apps.reports.renderers.document import report_schema
from apps.reports.renderers.page import FAMILIES_BY_WORD
from apps.reports.renderers.prepare import IN_SITE, NO_SITE, link_under
from apps.reports.sections.words import VERDICTS
from tests.apps.reports import samples
from tests.dashboard.markup import Page, visible_text

GOLDEN = Path(__file__).with_name("golden")
SITE = "https://gangdash.example"
FORMULAS = ("=", "+", "-", "@", "|", "%")


class Tags(HTMLParser):
    """Collects what a browser would take for tags and attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {key for key, _value in attrs}


def html(content: Content, base_url: str | None = SITE) -> str:
    return render(content, ReportForm.HTML, base_url=base_url)


def cells(content: Content) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(render(content, ReportForm.CSV, base_url=SITE))))


@pytest.mark.parametrize("form", [ReportForm.MARKDOWN, ReportForm.CSV, ReportForm.JSON, ReportForm.HTML])
def test_a_report_reads_as_it_did(form: ReportForm) -> None:
    """The files were read by a person; a change of them is a decision."""
    written = render(samples.content(), form, base_url=SITE)
    assert written.replace("\r\n", "\n") == (GOLDEN / f"report.{form}").read_text(encoding="utf-8")


@pytest.mark.parametrize("form", list(ReportForm))
def test_each_form_is_the_same_for_the_same_content(form: ReportForm) -> None:
    assert render(samples.content(), form, base_url=SITE) == render(samples.content(), form, base_url=SITE)


def test_every_sentence_number_and_gap_is_in_every_form() -> None:
    content = samples.content()
    texts = {form: render(content, form, base_url=SITE) for form in (ReportForm.JSON, ReportForm.CSV)}
    plain = {str(form): text for form, text in texts.items()}
    plain["html"] = visible_text(html(content).encode())
    for section in content.sections:
        wanted = [*section.sentences, *(figure.text for figure in section.figures)]
        wanted += [cell.text for tab in section.tables for row in tab.rows for cell in row]
        for form, text in plain.items():
            missing = [word for word in wanted if word not in text and json.dumps(word)[1:-1] not in text]
            assert not missing, form
    assert "no Prometheus is connected" in plain["html"]


def test_json_is_the_content_again_and_keeps_to_its_schema() -> None:
    written = json.loads(render(samples.content(), ReportForm.JSON, base_url=None))
    assert content_decode(json.dumps(written)) == samples.content()
    schema = report_schema()["$defs"]
    assert set(written) == set(schema["Content"]["properties"])
    assert set(written["sections"][0]["figures"][0]) == set(schema["Figure"]["properties"])
    assert schema["Known"]["enum"] == ["not_read", "unset", "value"]


def test_csv_tells_numbers_from_what_is_not_read() -> None:
    rows = cells(samples.content())
    polls = next(row for row in rows if row["name"] == "polls")
    assert (float(polls["value"]), float(polls["before"]), polls["known"]) == (8637.0, 8640.0, "value")
    unread = [row for row in rows if row["known"] == "not_read"]
    assert unread
    assert {row["value"] for row in unread} == {""}
    points = [row for row in rows if row["kind"] == "point" and row["column"] == "NO_FIT"]
    assert len(points) == 24
    assert sum(row["known"] == "not_read" for row in points) == 2


def test_html_is_whole_accessible_and_asks_for_nothing() -> None:
    written = html(samples.content())
    assert not Page(written.encode()).faults
    assert not re.search(r"<(script|link|img|iframe|object)\b", written)
    assert "url(http" not in written
    assert "@import" not in written
    assert set(re.findall(r'href="([^"]*)"', written)) <= {
        f"{SITE}{path}" for path in re.findall(r'(?<=")/[^"]*', html(samples.content(), IN_SITE))
    }
    assert "default-src 'none'" in written
    assert "@media print" in written
    assert "prefers-color-scheme: dark" in written


def test_each_chart_has_words_and_a_table_beside_it() -> None:
    written = html(samples.content())
    assert written.count('role="img"') == written.count("<desc>") == written.count("Show as table") == 3
    assert "not read from 14:00 to 16:00" in written


def test_a_verdict_has_its_colour_beside_its_word() -> None:
    assert {word: FAMILIES[verdict] for verdict, word in VERDICTS.items()} == FAMILIES_BY_WORD
    assert '<i class="rp-dot rp-config" aria-hidden="true"></i>Config' in html(samples.content())


@pytest.mark.parametrize(
    "figure, told",
    [
        (Figure("a", "A", 8, text="8", before=11), "\u22123"),
        (Figure("a", "A", 8, text="8", before=8), "0"),
        (Figure("a", "A", 12.4, "GPU-hours", "12", before=2.15), "+10"),
        (Figure("a", "A", 5400.0, "s", "90 min", before=1800.0), "+60 min"),
        (Figure("a", "A", 10.0, "s", "10 s", before=10.2), "0"),
        (Figure("a", "A", 0.91, text="91\u00a0%", before=0.96), "\u22125 points"),
        (Figure("a", "A", 8, text="8"), ""),
        (Figure("a", "A", None, text="\u2014", before=8, known=Known.UNSET), ""),
        (Figure("a", "A", 8, text="not read", before=8, known=Known.NOT_READ), ""),
    ],
)
def test_changes_are_written_in_the_unit_of_their_figure(figure: Figure, told: str) -> None:
    assert words.change(figure) == told


def test_an_empty_report_says_that_there_is_nothing() -> None:
    text = visible_text(html(samples.empty()).encode())
    for said in ("Nothing waits.", "Nothing waited.", "No gaps.", "Nothing was analysed by the end of this range"):
        assert said in text
    assert "Nothing waits." in render(samples.empty(), ReportForm.MARKDOWN, base_url=SITE)
    assert not Page(html(samples.empty()).encode()).faults


@pytest.mark.parametrize("name", samples.HOSTILE)
def test_no_name_becomes_markup_in_html_or_mail(name: str) -> None:
    content = samples.hostile(name)
    for written in (html(content), mail.render(content, link=f"{SITE}/r", base_url=SITE)):
        found = Tags(written)
        assert not {"script", "img"} & found.tags
        assert not [key for key in found.attributes if key.startswith("on")]
        assert 'href="javascript' not in written
        assert "evil.example" not in written
        assert not re.search("[\u202a-\u202e\u200b\x00-\x08\x1b]", written)
    assert not Page(html(content).encode()).faults


@pytest.mark.parametrize("name", samples.HOSTILE)
def test_no_name_becomes_a_formula_in_csv(name: str) -> None:
    text = render(samples.hostile(name), ReportForm.CSV, base_url=SITE)
    for row in csv.reader(io.StringIO(text)):
        assert len(row) == len(table.COLUMNS)
        for cell in row:
            assert not cell.lstrip(" ").startswith(FORMULAS)
            assert not {"\n", "\r", "\x1b"} & set(cell)


def test_negative_numbers_stay_numbers_in_csv() -> None:
    assert table.safe(-3.5) == -3.5
    assert table.safe("-3") == "'-3"
    assert table.safe("  =1") == "'  =1"


@pytest.mark.parametrize("name", samples.HOSTILE)
def test_no_name_becomes_markdown(name: str) -> None:
    text = render(samples.hostile(name), ReportForm.MARKDOWN, base_url=SITE)
    unescaped = re.sub(r"\\.", "", text)
    assert "](javascript" not in unescaped
    assert not re.search(r"<\w|`|\*\*bold|^# head|^- item", unescaped, re.MULTILINE)
    assert not re.search("[\u202a-\u202e\u200b\x00-\x08\x1b]", text)
    for line in unescaped.splitlines():
        if line.startswith("|"):
            assert line.count("|") in {3, 2}
    assert sum(line.startswith("# ") for line in text.splitlines()) == 1


@pytest.mark.parametrize(
    "text, written",
    [
        ("1. first", "1\\. first"),
        ("1.5 GPUs", "1.5 GPUs"),
        ("- item", "\\- item"),
        ("a_b", "a\\_b"),
        ("http://x.y", "http:/\\/x.y"),
        ("www.x.y", "www\\.x.y"),
        ("<!channel>", "\\<!channel\\>"),
    ],
)
def test_markdown_marks_are_escaped_where_they_mean_something(text: str, written: str) -> None:
    assert markdown.escape(text) == written


@pytest.mark.parametrize("name", samples.HOSTILE)
def test_a_hostile_report_is_still_valid_json(name: str) -> None:
    written = json.loads(render(samples.hostile(name), ReportForm.JSON, base_url=SITE))
    assert written["sections"][1]["tables"][0]["rows"][0][0]["link"] == ""


@pytest.mark.parametrize("name", samples.HOSTILE)
def test_a_file_name_is_safe_in_a_header(name: str) -> None:
    assert re.fullmatch(
        r"gangdash-report-[A-Za-z0-9.-]{1,80}-20261130T0800Z\.csv", file_name(samples.hostile(name), ReportForm.CSV)
    )


def test_links_lead_into_the_site_or_nowhere() -> None:
    assert link_under(SITE, "/gangs/?at=1") == f"{SITE}/gangs/?at=1"
    assert link_under(IN_SITE, "/gangs/") == "/gangs/"
    assert link_under(NO_SITE, "/gangs/") == ""
    for bad in ("", "gangs", "//evil.example", "/\\evil.example", "javascript:alert(1)", "https://x", "/a\nb"):
        assert link_under(SITE, bad) == ""


def test_without_an_address_of_the_site_nothing_is_a_link() -> None:
    written = html(samples.content(), NO_SITE)
    assert "href=" not in written
    assert "](" not in render(samples.content(), ReportForm.MARKDOWN, base_url=NO_SITE)


def test_the_mail_is_light_whole_and_leads_to_the_report() -> None:
    written = mail.render(samples.content(), link=f"{SITE}/reports/7/", base_url=SITE)
    assert f'href="{SITE}/reports/7/"' in written
    assert "<style" not in written
    assert "var(" not in written
    text = visible_text(f"<h1>x</h1>{written}".encode())
    assert "whisper-large-ft-1" in text
    assert "queue admin: Raise the limit of batch-eval from 24 to 36 GPUs" in text.replace(" :", ":")
    assert "and 3 more" in text
    assert "Not read: device utilisation." in text
    assert "Open the full report" not in mail.render(samples.content(), link="", base_url="")
