"""REST for channels and the delivery log: the same as the pages, for the same people."""

from __future__ import annotations

from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries
from rest_framework.test import APIClient

from apps.accounts.choices import TokenScope
from apps.accounts.models import User
from apps.accounts.services import token_create
from apps.delivery.choices import ChannelKind, DeliveryKind
from apps.delivery.messages import Message
from apps.delivery.models import Channel, Delivery
from apps.delivery.services import enqueue, send_due
from tests.apps.delivery.conftest import NOW, SECRET, MakeChannel
from tests.apps.delivery.far_side import OK, FarSide, says

pytestmark = pytest.mark.django_db
URL = f"https://hooks.slack.com/services/{SECRET}"


@pytest.fixture
def admin(alice: User) -> APIClient:
    client = APIClient()
    client.force_login(alice)
    return client


def post(client: APIClient, **values: Any) -> Any:
    content = {"name": "ops", "kind": "slack_webhook", "url": URL, **values}
    return client.post("/api/v1/channels", content, format="json")


def test_a_channel_is_added_and_its_secret_never_comes_back(admin: APIClient) -> None:
    made = post(admin, quiet_from="22:00", quiet_to="07:00", quiet_days=[0], clusters=["east"])
    assert made.status_code == 201
    found = admin.get(f"/api/v1/channels/{made.json()['id']}").json()
    assert (found["name"], found["host"], found["clusters"]) == ("ops", "hooks.slack.com", ["east"])
    assert not {"url", "token", "signing_key", "sealed"} & set(found)
    listed = admin.get("/api/v1/channels").content.decode()
    assert SECRET not in made.content.decode() + listed


def test_a_made_up_signing_key_is_in_the_first_answer_only(admin: APIClient) -> None:
    made = post(admin, kind="webhook").json()
    assert len(made["signing_key"]) > 40
    assert made["signing_key"] not in admin.get(f"/api/v1/channels/{made['id']}").content.decode()
    assert post(admin, name="b", kind="webhook", signing_key="k" * 40).json()["signing_key"] == ""


def test_a_change_leaves_what_it_does_not_name(admin: APIClient, make_channel: MakeChannel) -> None:
    channel = make_channel(namespaces=("a", "b"))
    path = f"/api/v1/channels/{channel.pk}"
    assert admin.patch(path, {"digest_after": None}, format="json").json()["digest_after"] is None
    assert admin.patch(path, {"is_enabled": False}, format="json").json()["is_enabled"] is False
    sealed = channel.sealed
    channel.refresh_from_db()
    assert (channel.namespaces, channel.sealed) == (["a", "b"], sealed)
    admin.patch(path, {"url": "https://other.example/x"}, format="json")
    assert admin.get(path).json()["host"] == "other.example"


@pytest.mark.parametrize(
    "values, status, code",
    [
        ({"kind": "fax"}, 400, "invalid"),
        ({"url": "ftp://x/"}, 400, "channel_not_valid"),
        ({"quiet_days": [9]}, 400, "invalid"),
        ({"quiet_zone": "Mars"}, 400, "channel_not_valid"),
        ({"kind": "email"}, 400, "channel_not_valid"),
        ({"name": "taken"}, 409, "channel_name_taken"),
        ({"name": "\x00"}, 400, "invalid"),
    ],
)
def test_refusals_have_their_code(
    admin: APIClient, make_channel: MakeChannel, values: dict[str, Any], status: int, code: str
) -> None:
    make_channel(name="taken")
    answer = post(admin, **values)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer["Content-Type"] == "application/problem+json"
    assert SECRET not in answer.content.decode()


def test_everything_is_for_admins_who_are_logged_in_themselves(
    make_channel: MakeChannel, alice: User, bob: User
) -> None:
    channel = make_channel()
    row = enqueue(channel=channel, kind=DeliveryKind.ALERT, key="a", message=Message(title="x"), now=NOW)
    as_bob, nobody, token = APIClient(), APIClient(), APIClient()
    as_bob.force_login(bob)
    text = token_create(user=alice, name="t", scopes=list(TokenScope)).text
    token.credentials(HTTP_AUTHORIZATION=f"Bearer {text}")
    calls = [
        ("get", "/channels"), ("post", "/channels"), ("get", f"/channels/{channel.pk}"),
        ("patch", f"/channels/{channel.pk}"), ("delete", f"/channels/{channel.pk}"),
        ("post", f"/channels/{channel.pk}/test"), ("post", f"/channels/{channel.pk}/retry"), ("get", "/deliveries"),
        ("get", f"/deliveries/{row.uuid}"), ("post", f"/deliveries/{row.uuid}/resend"),
    ]  # fmt: skip
    for verb, path in calls:
        codes = [getattr(client, verb)(f"/api/v1{path}").status_code for client in (nobody, as_bob, token)]
        assert codes == [401, 403, 403], (verb, path)
    assert Channel.objects.exists()


def test_a_test_is_sent_and_the_log_tells_how_it_went(
    admin: APIClient, make_channel: MakeChannel, side: FarSide
) -> None:
    channel = make_channel(ChannelKind.WEBHOOK)
    sent = admin.post(f"/api/v1/channels/{channel.pk}/test")
    assert (sent.status_code, sent.json()["state"]) == (202, "due")
    Delivery.objects.update(created_at=NOW)
    send_due(now=NOW)
    found = admin.get(f"/api/v1/deliveries/{sent.json()['id']}").json()
    assert (found["state"], found["attempts"], found["channel"]) == ("sent", 1, "ops")
    assert side.requests[0].headers["idempotency-key"] == found["id"]


def test_a_stopped_channel_is_retried_and_one_message_resent(
    admin: APIClient, make_channel: MakeChannel, side: FarSide
) -> None:
    channel = make_channel()
    side.will(says(404), OK)
    row = enqueue(channel=channel, kind=DeliveryKind.ALERT, key="a", message=Message(title="x"), now=NOW)
    send_due(now=NOW)
    assert admin.get("/api/v1/deliveries?state=stopped").json()["results"][0]["stop_scope"] == "channel"
    assert admin.post(f"/api/v1/channels/{channel.pk}/retry").json() == {"due": 1}
    send_due(now=NOW)
    assert admin.post(f"/api/v1/deliveries/{row.uuid}/resend").json()["may_repeat"] is True
    Delivery.objects.update(state="carried")
    again = admin.post(f"/api/v1/deliveries/{row.uuid}/resend")
    assert (again.status_code, again.json()["code"]) == (409, "delivery_not_resendable")


def test_the_log_is_paged_and_says_what_holds_a_message(admin: APIClient, make_channel: MakeChannel) -> None:
    channel = make_channel()
    Channel.objects.update(is_enabled=False)
    for key in "abc":
        enqueue(channel=channel, kind=DeliveryKind.ALERT, key=key, message=Message(title=key), now=NOW)
    page = admin.get("/api/v1/deliveries?page_size=2").json()
    assert [row["key"] for row in page["results"]] == ["c", "b"]
    assert page["results"][0]["held_by"] == "the channel is paused"
    assert [row["key"] for row in admin.get(page["next"]).json()["results"]] == ["a"]
    assert admin.get("/api/v1/deliveries?state=lost").status_code == 400


@pytest.mark.parametrize("path", ["/channels/999", "/deliveries/x", "/deliveries/5a0c0b34-2c1e-4a6a-9e2a-3a6f0f1f5c11"])
def test_what_is_not_there_is_404(admin: APIClient, path: str) -> None:
    answer = admin.get(f"/api/v1{path}")
    assert (answer.status_code, answer["Content-Type"]) == (404, "application/problem+json")


def test_deleting_takes_the_log_along(admin: APIClient, make_channel: MakeChannel) -> None:
    channel = make_channel()
    enqueue(channel=channel, kind=DeliveryKind.ALERT, key="a", message=Message(title="x"), now=NOW)
    assert admin.delete(f"/api/v1/channels/{channel.pk}").status_code == 204
    assert not Delivery.objects.exists()


def test_reads_cost_the_same_for_many_rows(
    admin: APIClient, make_channel: MakeChannel, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for at in range(20):
        channel = make_channel(name=f"c{at}")
        message = Message(title=f"m{at}")
        enqueue(channel=channel, kind=DeliveryKind.ALERT, key="k", message=message, now=NOW)
    for path in ("/channels", "/deliveries"):
        with django_assert_num_queries(3):
            assert len(admin.get(f"/api/v1{path}").json()["results"]) == 20
