"""The pages of channels in a real browser: no fault, never wider than the window, and the list follows what is sent."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone
from pytest_django.live_server_helper import LiveServer

from apps.accounts.models import User
from apps.delivery.models import Delivery
from apps.delivery.services import send_due
from tests.apps.delivery.conftest import MakeChannel
from tests.dashboard.chromium import Tab, find_chromium, tab

CHROMIUM = find_chromium()
NAME = "n" * 64
PLACES = ("/channels/", "/channels/log/", "/channels/new/slack_bot/", "/channels/new/webhook/")

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine"),
]


@pytest.fixture
def browser(live_server: LiveServer, tmp_path: Path, alice: User) -> Iterator[tuple[Tab, str]]:
    """Give a tab that is signed in as Alice."""
    assert CHROMIUM is not None
    client = Client()
    client.force_login(alice)
    with tab(CHROMIUM, tmp_path / "profile") as page:
        cookie = client.cookies[settings.SESSION_COOKIE_NAME].value
        page.send("Network.setCookie", name=settings.SESSION_COOKIE_NAME, value=cookie, url=live_server.url)
        yield page, live_server.url


def test_pages_fit_and_a_test_is_seen_to_arrive(browser: tuple[Tab, str], make_channel: MakeChannel) -> None:
    page, url = browser
    channel = make_channel(name=NAME, clusters=tuple(f"{'c' * 200}{at}" for at in range(3)))
    one = f"/channels/{channel.pk}/"
    page.open(url + one)
    page.run("[...document.querySelectorAll('button')].find((b) => b.textContent === 'Send a test').click()")
    page.until("document.querySelector('#channel-state')?.innerText.includes('1 gang waits for 48 GPUs')")
    assert page.run("document.querySelector('#channel-state').innerText.includes('Due')")
    send_due(now=timezone.now() + timedelta(seconds=1))
    assert Delivery.objects.get().state == "sent"
    page.until("document.querySelector('#channel-state').innerText.includes('Working')")
    for width in (400, 1440, 2560):
        page.send("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        for place in (*PLACES, one):
            page.open(url + place)
            assert page.run("document.documentElement.scrollWidth <= innerWidth"), f"{place} is too wide at {width}"
    assert page.faults == []
