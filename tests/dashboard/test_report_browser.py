"""Reports really drawn: pages and the file on its own, from a phone to a wall, light, dark and on paper."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from apps.reports.choices import ReportForm, ReportState
from apps.reports.models import Report
from apps.reports.renderers import render
from tests.apps.reports import samples
from tests.dashboard.chromium import Tab
from tests.dashboard.test_browser import CHROMIUM, browser
from tests.dashboard.test_reports import kept
from tests.dashboard.world import whole_world

__all__ = ["browser"]

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine"),
]
WIDTHS = (400, 1440, 2560)
FITS = "document.documentElement.scrollWidth <= innerWidth"


def at_width(page: Tab, width: int) -> None:
    page.send("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)


def test_the_pages_fit_every_window(browser: tuple[Tab, str]) -> None:
    report = kept(whole_world().cluster)
    page, url = browser
    for width in WIDTHS:
        at_width(page, width)
        for place in ("/reports/", f"/reports/{report.pk}/", f"/reports/{report.pk}/?with={report.pk}",
                      "/reports/schedules/new"):  # fmt: skip
            page.open(url + place)
            assert page.run(FITS), f"{place} is too wide at {width}"
    assert page.faults == []


def test_a_waiting_report_appears_by_itself(browser: tuple[Tab, str]) -> None:
    report = kept(whole_world().cluster, state=ReportState.WAITING)
    page, url = browser
    page.open(f"{url}/reports/{report.pk}/")
    assert page.run("document.querySelector('.rp') === null")
    Report.objects.update(state=ReportState.DONE)
    assert page.until("document.querySelectorAll('.rp-chart').length") == 3
    assert page.faults == []


def test_the_file_stands_alone_in_light_dark_and_on_paper(browser: tuple[Tab, str], tmp_path: Path) -> None:
    page, _url = browser
    file = tmp_path / "report.html"
    file.write_text(render(samples.content(), ReportForm.HTML, base_url="https://gangdash.example"), encoding="utf-8")
    page.open(file.as_uri())
    assert page.run("performance.getEntriesByType('resource').length") == 0
    for width in WIDTHS:
        at_width(page, width)
        assert page.run(FITS), f"the file is too wide at {width}"
    paper = "getComputedStyle(document.body).backgroundColor"
    colours = {}
    for scheme in ("light", "dark"):
        page.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        colours[scheme] = page.run(paper)
    page.send("Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    assert colours["light"] != colours["dark"]
    assert page.run(paper) == colours["light"]
    assert page.run("getComputedStyle(document.querySelector('.rp-data')).display") == "none"
    printed = base64.b64decode(page.send("Page.printToPDF", printBackground=True)["data"])
    assert printed.startswith(b"%PDF-")
    assert 1 <= printed.count(b"/Type /Page\n") <= 3
    assert page.faults == []
