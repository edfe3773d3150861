"""Hands one message to its channel: opens the secrets, writes the message in the channel's form, sends it once.

Returns what became of it; never writes a row. Secrets live only for the length of one call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from django.conf import settings

from apps.delivery import render_mail, render_slack, render_webhook
from apps.delivery.choices import ChannelKind, DeliveryKind, StopScope
from apps.delivery.messages import Envelope, Message
from apps.delivery.models import Channel
from apps.delivery.outcomes import Outcome, Verdict, of_error, of_reply
from apps.delivery.smtp import mail_domain, mail_send
from apps.delivery.targets import Policy, TargetError, parse
from apps.delivery.transport import Call, Reply, TransportError, Way, post
from apps.delivery.vault import VaultError, unseal
from gangdash import __version__

SLACK_API = "https://slack.com/api"
_JSON = "application/json; charset=utf-8"


def policy() -> Policy:
    """Return which addresses the settings allow."""
    return Policy(settings.GANGDASH_WEBHOOK_PRIVATE_TARGETS, tuple(settings.GANGDASH_WEBHOOK_ALLOWED_NETWORKS))


def carry(channel: Channel, message: Message, envelope: Envelope, *, reply_to: str = "") -> Outcome:
    """Send a message; ``reply_to`` is what the channel calls the message that this one follows."""
    try:
        secrets = unseal(channel.sealed)
    except VaultError as error:
        return Outcome(Verdict.NEVER, str(error), StopScope.CHANNEL)
    if channel.kind == ChannelKind.EMAIL:
        mail = render_mail.render(message, envelope, domain=mail_domain())
        return mail_send(mail, recipients=channel.recipients)
    url, body, headers = _request(channel, secrets, message, envelope, reply_to)
    try:
        return of_reply(channel.kind, _post(url, body, headers))
    except (TargetError, TransportError) as error:
        return of_error(error)


def _request(
    channel: Channel, secrets: Mapping[str, str], message: Message, envelope: Envelope, reply_to: str
) -> tuple[str, bytes, dict[str, str]]:
    """Return where a message goes, its body and its headers."""
    url = secrets.get("url", "")
    if channel.kind == ChannelKind.WEBHOOK:
        body = render_webhook.render(message, envelope)
        key = secrets.get("signing_key", "")
        return url, body, render_webhook.headers(envelope, body, key=key, at=envelope.now)
    content = render_slack.render(message, envelope)
    headers = {"Content-Type": _JSON, "User-Agent": f"gangdash/{__version__}"}
    if channel.kind == ChannelKind.SLACK_BOT:
        content |= {"channel": channel.slack_channel, **_thread(envelope, reply_to)}
        headers["Authorization"] = f"Bearer {secrets.get('token', '')}"
        url = f"{url or SLACK_API}/chat.postMessage"
    return url, msgspec.json.encode(content), headers


def _thread(envelope: Envelope, reply_to: str) -> dict[str, Any]:
    """Return what puts a message under another; the end of an alert is told to the whole channel as well."""
    if not reply_to:
        return {}
    return {"thread_ts": reply_to, "reply_broadcast": envelope.kind == DeliveryKind.RESOLVED}


def _post(url: str, body: bytes, headers: Mapping[str, str]) -> Reply:
    way = Way(policy(), settings.GANGDASH_WEBHOOK_PROXY, settings.GANGDASH_WEBHOOK_CA_FILE)
    return post(Call(parse(url, way.policy), body, headers, way))
