"""The pages of alerts in a real browser: nothing wider than the window, no script fault, no policy breach."""

from __future__ import annotations

import pytest

from apps.alerts.models import Mute, Route
from apps.alerts.services.rules import rules_ensure
from apps.delivery.models import Channel
from tests.dashboard.chromium import Tab, find_chromium
from tests.dashboard.test_alerts import fire
from tests.dashboard.test_browser import browser
from tests.dashboard.world import whole_world

__all__ = ["browser"]
pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(find_chromium() is None, reason="no Chromium on this machine"),
]


def test_the_pages_of_alerts_are_drawn_at_every_width(browser: tuple[Tab, str]) -> None:
    rules_ensure()
    world = whole_world()
    alert = fire(world, ["llama-70b-disagg-0", "swe-bench-qwen-9"])
    fire(world, [], rule="blind", signature="x", title="Pod of fjord-1 cannot be read", verdict="", code="")
    fire(world, ["swe-bench-qwen-9"], signature="y", state="resolved", resolved_at=world.now, resolution="started")
    channel = Channel.objects.create(name="ops", kind="webhook", host="hooks.example")
    route = Route.objects.create(name="all", channel=channel)
    Mute.objects.create(kind="queue", value="q" * 60, reason="why", created_at=world.now, created_name="a",
                        ends_at=world.now.replace(year=2099))  # fmt: skip
    page, url = browser
    places = ("/alerts/", f"/alerts/{alert.pk}/", f"/alerts/mute?alert={alert.pk}", "/alerts/rules/new",
              "/alerts/rules/flapping/?look", f"/alerts/routes/{route.pk}/")  # fmt: skip
    for width in (400, 1440, 2560):
        page.send("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        for place in places:
            page.open(url + place)
            page.until("document.readyState == 'complete'")
            assert page.run("document.documentElement.scrollWidth <= innerWidth"), f"{place} is too wide at {width}"
    assert page.faults == []
