"""The pages of channels: for admins only, well formed with hostile words, secrets in no answer, tests really sent."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from apps.accounts.choices import Role
from apps.accounts.models import User
from apps.delivery.choices import ChannelKind, DeliveryKind, DeliveryState
from apps.delivery.messages import Message
from apps.delivery.models import Channel, Delivery
from apps.delivery.services import enqueue, send_due
from tests.apps.delivery.conftest import NOW, SECRET, SIGNING_KEY, TOKEN, MakeChannel
from tests.apps.delivery.far_side import OK, FarSide, says
from tests.dashboard.markup import Page, visible_text

pytestmark = pytest.mark.django_db
EVIL = '<img src=x onerror=alert(1)>" onmouseover="x'
FIELDS = {"name": "team", "digest_after": "5", "digest_minutes": "10", "quiet_zone": "UTC"}


@pytest.fixture
def admin(alice: User) -> Client:
    client = Client()
    client.force_login(alice)
    return client


def filled(channel: Channel) -> None:
    """Give a channel a message in each state."""
    for at, state in enumerate(DeliveryState.values):
        message = Message(title=f"{EVIL} {state}")
        row = enqueue(channel=channel, kind=DeliveryKind.ALERT, key=f"{EVIL}{at}", message=message, now=NOW)
        Delivery.objects.filter(pk=row.pk).update(state=state, detail=EVIL, may_repeat=True, sent_at=NOW)


def pages_of(channel: Channel) -> list[str]:
    kinds = [f"/channels/new/{kind}/" for kind in ChannelKind.values]
    return ["/channels/", f"/channels/{channel.pk}/", "/channels/log/", "/channels/log/?state=due&kind=x", *kinds]


@pytest.mark.parametrize("kind", ChannelKind.values)
def test_pages_are_well_formed_and_hold_no_secret(admin: Client, make_channel: MakeChannel, kind: ChannelKind) -> None:
    channel = make_channel(ChannelKind(kind), name=EVIL, clusters=(EVIL,))
    filled(channel)
    Channel.objects.update(last_error=EVIL, last_error_at=NOW, stopped_at=NOW, last_success_at=NOW - timedelta(hours=1))
    for path in pages_of(channel):
        answer = admin.get(path)
        assert answer.status_code == 200, path
        assert not Page(answer.content).faults, path
        content = answer.content.decode()
        assert "<img" not in content
        assert not [word for word in (SECRET, TOKEN, SIGNING_KEY) if word in content]


def test_pages_are_for_admins(make_channel: MakeChannel, bob: User) -> None:
    channel = make_channel()
    row = enqueue(channel=channel, kind=DeliveryKind.ALERT, key="a", message=Message(title="x"), now=NOW)
    viewer = User.objects.create_user("viewer", role=Role.VIEWER)
    for user in (bob, viewer):
        client = Client()
        client.force_login(user)
        for path in [*pages_of(channel), f"/channels/{channel.pk}/fragment"]:
            assert client.get(path).status_code == 403, path
        for path in (f"/channels/{channel.pk}/do/delete", f"/channels/log/{row.uuid}/resend", "/channels/new/webhook/"):
            assert client.post(path, FIELDS).status_code == 403, path
        assert "/channels/" not in client.get("/").content.decode()
    assert Channel.objects.count() == 1


def test_admins_find_the_page(admin: Client) -> None:
    assert 'href="/channels/"' in admin.get("/").content.decode()
    assert "Channels" in [item["title"] for item in admin.get("/palette?q=channels").json()["items"]]


def test_a_webhook_is_added_tested_and_its_key_shown_once(admin: Client, side: FarSide) -> None:
    side.will(says(204))
    made = admin.post("/channels/new/webhook/", {**FIELDS, "url": f"{side.url}/{SECRET}"})
    channel = Channel.objects.get()
    assert "Copy the signing key now" in visible_text(made.content)
    assert not Page(made.content).faults
    assert "Copy the signing key now" not in visible_text(admin.get(f"/channels/{channel.pk}/").content)
    admin.post(f"/channels/{channel.pk}/do/test")
    assert send_due(now=NOW + timedelta(days=365)) == 1
    assert side.requests[0].headers["x-gangdash-event"] == "test"
    text = visible_text(admin.get(f"/channels/{channel.pk}/").content)
    assert "Working" in text
    assert "1 gang waits for 48 GPUs" in text


def test_what_is_wrong_stands_beside_its_field(admin: Client) -> None:
    answer = admin.post("/channels/new/slack_webhook/", {**FIELDS, "url": "https://user:secretpw@hooks.example/"})
    assert answer.status_code == 422
    assert "must not hold a user name or password" in visible_text(answer.content)
    assert "secretpw" not in answer.content.decode()
    assert not Page(answer.content).faults
    assert admin.post("/channels/new/email/", {**FIELDS, "recipients": "nobody"}).status_code == 422
    assert admin.post("/channels/new/email/", {**FIELDS, "digest_minutes": "no"}).status_code == 422
    assert not Channel.objects.exists()
    assert admin.get("/channels/new/fax/").status_code == 404


def test_a_channel_is_changed_without_typing_its_secret_again(admin: Client, make_channel: MakeChannel) -> None:
    channel = make_channel(clusters=("east", "west"))
    values = {
        **FIELDS, "name": "renamed", "digest_after": "", "clusters": " east ,north, south,", "quiet_from": "22:00",
        "quiet_to": "07:00", "quiet_zone": "Europe/Berlin", "quiet_days": ["5", "6"],
    }  # fmt: skip
    assert admin.post(f"/channels/{channel.pk}/", values).status_code == 302
    sealed = channel.sealed
    channel.refresh_from_db()
    assert (channel.name, channel.sealed, channel.digest_after) == ("renamed", sealed, None)
    assert channel.clusters == ["east", "north", "south"]
    assert (channel.quiet_days, channel.quiet_pages_pass) == ([5, 6], False)
    page = admin.get(f"/channels/{channel.pk}/").content.decode()
    assert 'value="22:00"' in page
    assert 'value="east, north, south"' in page
    assert admin.post(f"/channels/{channel.pk}/", {**values, "quiet_zone": "Mars"}).status_code == 422


def test_a_channel_pauses_goes_on_tries_again_and_ends(admin: Client, make_channel: MakeChannel, side: FarSide) -> None:
    channel = make_channel()
    side.will(says(410), OK)
    enqueue(channel=channel, kind=DeliveryKind.ALERT, key="a", message=Message(title="x"), now=NOW)
    send_due(now=NOW)
    assert "Stopped" in visible_text(admin.get("/channels/").content)
    for action in ("pause", "resume", "retry"):
        assert admin.post(f"/channels/{channel.pk}/do/{action}").status_code == 302
    assert send_due(now=NOW) == 1
    assert admin.post(f"/channels/{channel.pk}/do/burn").status_code == 404
    assert admin.get(f"/channels/{channel.pk}/do/delete").status_code == 405
    assert admin.post(f"/channels/{channel.pk}/do/delete").status_code == 302
    assert admin.get(f"/channels/{channel.pk}/").status_code == 404


def test_the_log_filters_and_sends_again(admin: Client, make_channel: MakeChannel, side: FarSide) -> None:
    first, second = make_channel(name="first"), make_channel(name="second")
    row = enqueue(channel=first, kind=DeliveryKind.ALERT, key="a", message=Message(title="of the first"), now=NOW)
    enqueue(channel=second, kind=DeliveryKind.REPORT, key="b", message=Message(title="of the second"), now=NOW)
    send_due(now=NOW)
    assert "of the second" not in visible_text(admin.get("/channels/log/?channel=first").content)
    assert "of the first" not in visible_text(admin.get("/channels/log/?kind=report").content)
    nothing = admin.get("/channels/log/?state=due&channel=first&kind=x")
    assert "0 messages match" in visible_text(nothing.content)
    assert "?channel=first&state=" in Page(nothing.content).links
    assert admin.post(f"/channels/log/{row.uuid}/resend").status_code == 302
    assert send_due(now=NOW) == 1
    assert admin.post("/channels/log/nothing/resend").status_code == 404


def test_the_fragment_answers_304_until_something_changes(
    admin: Client, make_channel: MakeChannel, side: FarSide
) -> None:
    channel = make_channel()
    path = f"/channels/{channel.pk}/fragment"
    etag = admin.get(path)["ETag"]
    assert admin.get(path, headers={"if-none-match": etag}).status_code == 304
    enqueue(channel=channel, kind=DeliveryKind.ALERT, key="a", message=Message(title="x"), now=NOW)
    assert admin.get(path, headers={"if-none-match": etag}).status_code == 200


def test_queries_do_not_grow_with_rows(
    admin: Client, make_channel: MakeChannel, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    channel = make_channel()
    for at in range(30):
        make_channel(name=f"c{at}")
        message = Message(title=f"m{at}")
        enqueue(channel=channel, kind=DeliveryKind.ALERT, key=f"k{at}", message=message, now=NOW)
    for path, queries in (("/channels/", 4), (f"/channels/{channel.pk}/", 7), ("/channels/log/", 6)):
        with django_assert_num_queries(queries):
            admin.get(path)
