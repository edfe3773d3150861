"""Each page and chart really drawn: no script fault, no policy breach, nothing wider than the window."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from django.conf import settings
from django.test import Client
from pytest_django.live_server_helper import LiveServer

from apps.workloads.models import Gang
from tests.dashboard.chromium import Tab, find_chromium, tab
from tests.dashboard.world import World, alice, history, whole_world

CHROMIUM = find_chromium()
GANG = "/clusters/fjord-1/gangs/chat-prod/llama-70b-disagg-0/"
PLACES = (
    "/",
    GANG,
    "/gangs/",
    "/queues/",
    "/topology/",
    "/nodes/",
    "/deployments/",
    "/checks/",
    "/clusters/fjord-1/",
    "/reasons/",
    "/uploads/",
    "/account/",
)

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine"),
]


@pytest.fixture
def browser(live_server: LiveServer, tmp_path: Path) -> Iterator[tuple[Tab, str]]:
    """Give a tab that is signed in as Alice."""
    assert CHROMIUM is not None
    client = Client()
    client.force_login(alice())
    with tab(CHROMIUM, tmp_path / "profile") as page:
        cookie = client.cookies[settings.SESSION_COOKIE_NAME].value
        page.send("Network.setCookie", name=settings.SESSION_COOKIE_NAME, value=cookie, url=live_server.url)
        yield page, live_server.url


def test_every_page_and_chart_is_drawn(browser: tuple[Tab, str]) -> None:
    world = whole_world()
    history(world)
    at = quote(world.stamp(world.at(60)))
    pinned = (f"/?at={at}", f"{GANG}?at={at}", f"/deployments/?at={at}")
    page, url = browser
    for width in (400, 1440, 2560):
        page.send("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        for place in (*PLACES, *pinned):
            page.open(url + place)
            page.until("[...document.querySelectorAll('[data-figure]')].every((chart) => chart.dataset.drawn)")
            assert page.run("document.documentElement.scrollWidth <= innerWidth"), f"{place} is too wide at {width}"
    assert page.run("typeof htmx") == "object"
    assert page.faults == []


def test_charts_have_a_path_per_band_and_follow_the_theme(browser: tuple[Tab, str]) -> None:
    whole_world()
    page, url = browser
    page.open(url + "/")
    bands = page.until("document.querySelectorAll('#plot-waiting .scatterlayer .trace').length")
    assert bands >= 8
    edge = "getComputedStyle(document.querySelector('#plot-waiting .js-line')).stroke"
    before = page.run(edge)
    page.press("D")
    assert page.run("document.documentElement.dataset.theme") in {"dark", "light"}
    assert page.until(f"{edge} !== {before!r}")
    page.open(url + GANG)
    bars = page.until("document.querySelectorAll('#plot-domains .bars .point').length")
    assert bars >= 9
    assert page.until("document.querySelectorAll('#plot-timeline .bars .point').length") == 3
    assert page.faults == []


def test_a_click_into_a_chart_leads_to_its_moment(browser: tuple[Tab, str]) -> None:
    whole_world()
    page, url = browser
    for place, chart in (("/", "plot-waiting"), (GANG, "plot-timeline")):
        page.open(url + place)
        page.until(f"document.getElementById({chart!r}).dataset.drawn")
        point = "chart.data[0].customdata ? {customdata: chart.data[0].customdata[0]} : {x: chart.data[0].x[0]}"
        page.run(f"(chart => chart.emit('plotly_click', {{points: [{point}]}}))(document.getElementById({chart!r}))")
        assert page.until("location.search.includes('at=') && document.querySelector('#strip.pinned')?.textContent")
    assert page.faults == []


def test_rows_do_not_move_before_they_are_asked_for(browser: tuple[Tab, str]) -> None:
    world: World = whole_world()
    page, url = browser
    page.open(url + "/")
    names = "[...document.querySelectorAll('tr.gr')].map((row) => row.id).join()"
    before = page.run(names)
    Gang.objects.filter(name="olmo-7b-ablate-19").update(state="fine")
    Gang.objects.filter(name="swe-bench-qwen-9").update(gpus_waiting=15)
    world.gang("mm-lab/newcomer", "sandbox", (1, 1), world.now - world.as_of, state="waits")
    ask = "htmx.ajax('GET', '/fragments/triage-list', {source: '#list', swap: 'none'})"
    page.run(ask)
    assert page.until("document.querySelector('#list-pending').textContent").startswith("2 rows changed")
    assert page.run(names) == before
    assert page.run("document.querySelector('tr.gr td:nth-child(3) b').textContent") == "15"
    page.run("document.querySelector('#list-pending button').click()")
    after = page.until(f"{names} !== {before!r} && {names}")
    assert len(after.split(",")) == len(before.split(","))
    assert page.faults == []


def test_keyboard_reaches_search_rows_palette_and_sheet(browser: tuple[Tab, str]) -> None:
    whole_world()
    page, url = browser
    page.open(url + "/")
    page.press("/")
    assert page.run("document.activeElement.name") == "q"
    page.run("document.activeElement.blur()")
    page.press("j")
    page.press("j")
    focused = page.run("document.activeElement.closest('tr').id")
    page.press("o")
    assert page.run(f"document.getElementById({focused!r}).closest('tbody').classList.contains('folded')")
    page.press("?")
    assert page.run("document.getElementById('shortcuts').open")
    page.run("document.getElementById('shortcuts').close()")
    page.run("document.querySelector('[data-do=palette]').click()")
    page.send("Input.insertText", text="whisper")
    assert page.until("document.querySelector('#palette-list li')?.textContent.includes('whisper-large-ft-1')")
    page.open(url + GANG)
    page.press("[")
    assert page.until("location.search.includes('at=') && document.readyState === 'complete'")
    assert page.run("document.querySelector('#strip.pinned').textContent")
    page.press("]")
    assert page.until("!location.search.includes('at=') && document.readyState === 'complete'")
    assert page.faults == []
