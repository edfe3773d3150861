"""Changes to channels, for admins. Secrets come in here, are sealed at once, and never come out again.

A secret that is left empty stays as it is. Each change leaves a row in the audit record, without what was secret.
"""

from __future__ import annotations

import secrets
import zoneinfo
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, time

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction

from apps.accounts.models import User
from apps.accounts.services import audit_record
from apps.delivery.carriers import SLACK_API, policy
from apps.delivery.choices import ChannelKind, DeliveryKind, DeliveryState, StopScope
from apps.delivery.models import Channel, Delivery
from apps.delivery.sample import sample_message
from apps.delivery.services import enqueue, send_ask
from apps.delivery.targets import TargetError, parse
from apps.delivery.vault import VaultError, seal, unseal
from apps.errors import ApplicationError

RECIPIENTS_MAX = 50
NAMES_MAX = 200
SECRET_MAX = 500
FILLED = (
    "name", "host", "sealed", "slack_channel", "recipients", "clusters", "namespaces", "digest_after",
    "digest_minutes", "quiet_zone", "quiet_days", "quiet_from", "quiet_to", "quiet_pages_pass",
)  # fmt: skip
ZONES = tuple(sorted(zoneinfo.available_timezones() - {"localtime", "Factory"}))
"""Without the machine's own zone, whose name means something else elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelValues:
    """What an admin fills in. ``url``, ``token`` and ``signing_key`` are secrets; empty ones stay as they are.

    Of an incoming webhook the address is all there is; a bot needs a token and a channel, and an address only where
    it is not Slack's own; a webhook's answers are signed with a key, which is made up where none is given.
    """

    name: str
    url: str = ""
    token: str = ""
    signing_key: str = ""
    slack_channel: str = ""
    recipients: tuple[str, ...] = ()
    clusters: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    digest_after: int | None = 5
    digest_minutes: int = 10
    quiet_zone: str = "UTC"
    quiet_days: tuple[int, ...] = ()
    quiet_from: time | None = None
    quiet_to: time | None = None
    quiet_pages_pass: bool = True

    def __repr__(self) -> str:
        return f"ChannelValues({self.name!r})"


def values_of(channel: Channel) -> ChannelValues:
    """Return what is filled in now, with the secrets left empty, as they stay where they are."""
    return ChannelValues(
        name=channel.name,
        slack_channel=channel.slack_channel,
        recipients=tuple(channel.recipients),
        clusters=tuple(channel.clusters),
        namespaces=tuple(channel.namespaces),
        digest_after=channel.digest_after,
        digest_minutes=channel.digest_minutes,
        quiet_zone=channel.quiet_zone,
        quiet_days=tuple(channel.quiet_days),
        quiet_from=channel.quiet_from,
        quiet_to=channel.quiet_to,
        quiet_pages_pass=channel.quiet_pages_pass,
    )


@dataclass(frozen=True, slots=True)
class NewChannel:
    """``signing_key`` is the key that was made up, to be shown this once; empty where the admin brought one."""

    channel: Channel
    signing_key: str


@transaction.atomic
def channel_create(*, kind: ChannelKind, values: ChannelValues, actor: User, address: str | None = None) -> NewChannel:
    """Add a channel."""
    made = secrets.token_urlsafe(32) if kind == ChannelKind.WEBHOOK and not values.signing_key else ""
    channel = Channel(kind=kind)
    _fill(channel, values, {"signing_key": made} if made else {})
    _save(channel, fields=None)
    _audit("channel.create", channel, actor, address)
    return NewChannel(channel, made)


@transaction.atomic
def channel_update(*, channel: Channel, values: ChannelValues, actor: User, address: str | None = None) -> None:
    """Change a channel; with a new secret or place it is given another try at once."""
    before = (channel.sealed, channel.slack_channel, channel.recipients)
    _fill(channel, values, {})
    fields = [*FILLED]
    if before != (channel.sealed, channel.slack_channel, channel.recipients):
        channel.stopped_at = channel.wait_since = channel.wait_until = None
        fields += ["stopped_at", "wait_since", "wait_until"]
    _save(channel, fields=fields)
    _audit("channel.update", channel, actor, address)
    transaction.on_commit(send_ask, robust=True)


@transaction.atomic
def channel_pause(*, channel: Channel, is_paused: bool, actor: User, address: str | None = None) -> None:
    """Pause a channel, which keeps its messages, or let it go on."""
    if Channel.objects.filter(pk=channel.pk, is_enabled=is_paused).update(is_enabled=not is_paused):
        _audit("channel.pause" if is_paused else "channel.resume", channel, actor, address)
        transaction.on_commit(send_ask, robust=True)


@transaction.atomic
def channel_retry(*, channel: Channel, actor: User, address: str | None = None) -> int:
    """Let a stopped channel try again, with what it gave up; return how many messages are due now."""
    Channel.objects.filter(pk=channel.pk).update(stopped_at=None, wait_since=None, wait_until=None)
    rows = Delivery.objects.filter(channel=channel)
    rows.filter(state=DeliveryState.STOPPED, stop_scope=StopScope.CHANNEL).update(
        state=DeliveryState.DUE, stop_scope=StopScope.NONE
    )
    due = rows.filter(state=DeliveryState.DUE).update(due_at=None)
    _audit("channel.retry", channel, actor, address)
    transaction.on_commit(send_ask, robust=True)
    return due


@transaction.atomic
def channel_delete(*, channel: Channel, actor: User, address: str | None = None) -> None:
    """Remove a channel with its secrets, its log and what it still had to deliver."""
    _audit("channel.delete", channel, actor, address)
    channel.delete()


@transaction.atomic
def channel_test(*, channel: Channel, actor: User, now: datetime, address: str | None = None) -> Delivery:
    """Have a sample sent, whatever pauses or stops the channel; one that arrives ends a stop."""
    message = sample_message(actor=actor.username, channel=channel.name)
    key = f"test:{now:%Y%m%dT%H%M%S.%f}"
    _audit("channel.test", channel, actor, address)
    return enqueue(channel=channel, kind=DeliveryKind.TEST, key=key, message=message, now=now)


def _audit(action: str, channel: Channel, actor: User, address: str | None) -> None:
    details: dict[str, object] = {"kind": channel.kind, "host": channel.host}
    audit_record(action=action, actor=actor, target=channel.name, details=details, address=address)


def _save(channel: Channel, *, fields: list[str] | None) -> None:
    """Write what was filled in, and nothing that a sender may be writing at the same time."""
    try:
        with transaction.atomic():
            channel.save(update_fields=fields)
    except IntegrityError as error:
        raise ApplicationError("channel_name_taken", f"There is a channel named {channel.name!r} already") from error


def _fill(channel: Channel, values: ChannelValues, made: Mapping[str, str]) -> None:
    """Check what was filled in and write it to the channel."""
    channel.name = values.name.strip()
    if not 1 <= len(channel.name) <= 64 or not channel.name.isprintable():
        raise _refused("name", "Name the channel with 1 to 64 characters")
    channel.slack_channel = values.slack_channel.strip()
    channel.recipients = _recipients(channel.kind, values.recipients)
    channel.clusters = _names("clusters", values.clusters)
    channel.namespaces = _names("namespaces", values.namespaces)
    _fill_times(channel, values)
    _fill_secrets(channel, values, made)


def _fill_times(channel: Channel, values: ChannelValues) -> None:
    if values.digest_after is not None and not 1 <= values.digest_after <= 1000:
        raise _refused("digest_after", "A digest begins after 1 to 1,000 alerts")
    if not 1 <= values.digest_minutes <= 1440:
        raise _refused("digest_minutes", "Alerts are counted over 1 to 1,440 minutes")
    channel.digest_after, channel.digest_minutes = values.digest_after, values.digest_minutes
    if values.quiet_zone not in ZONES:
        raise _refused("quiet_zone", "Name a time zone like Europe/Berlin")
    if (values.quiet_from is None) != (values.quiet_to is None):
        raise _refused("quiet_to", "Quiet hours need a beginning and an end")
    days = sorted(set(values.quiet_days))
    if any(not 0 <= day <= 6 for day in days):
        raise _refused("quiet_days", "Days count from 0, Monday, to 6, Sunday")
    if values.quiet_from is not None and not days:
        raise _refused("quiet_days", "Name the days on which quiet hours begin")
    channel.quiet_zone, channel.quiet_days = values.quiet_zone, days
    channel.quiet_from, channel.quiet_to = values.quiet_from, values.quiet_to
    channel.quiet_pages_pass = values.quiet_pages_pass


def _fill_secrets(channel: Channel, values: ChannelValues, made: Mapping[str, str]) -> None:
    """Seal what is new together with what stays, and keep the host to be shown."""
    given = {"url": values.url.strip(), "token": values.token.strip(), "signing_key": values.signing_key.strip()}
    new = {name: value for name, value in given.items() if value and name in SECRETS[channel.kind]} | dict(made)
    try:
        found = {**_present_secrets(channel, new), **new}
        _check_secrets(channel, found)
        if new:
            channel.sealed = seal(found)
    except VaultError as error:
        raise ApplicationError("secrets_locked", str(error)) from error
    if channel.kind != ChannelKind.EMAIL:
        channel.host = _host(found.get("url") or SLACK_API)


def _present_secrets(channel: Channel, new: Mapping[str, str]) -> dict[str, str]:
    """Return what is sealed; where no key opens it any more, nothing, if all that is needed has just been given."""
    try:
        return unseal(channel.sealed)
    except VaultError:
        if set(new) >= _NEEDED[channel.kind]:
            return {}
        raise


SECRETS: Mapping[str, frozenset[str]] = {
    ChannelKind.SLACK_WEBHOOK: frozenset({"url"}),
    ChannelKind.SLACK_BOT: frozenset({"token", "url"}),
    ChannelKind.WEBHOOK: frozenset({"url", "signing_key"}),
    ChannelKind.EMAIL: frozenset(),
}
_NEEDED: Mapping[str, frozenset[str]] = {
    ChannelKind.SLACK_WEBHOOK: frozenset({"url"}),
    ChannelKind.SLACK_BOT: frozenset({"token"}),
    ChannelKind.WEBHOOK: frozenset({"url", "signing_key"}),
    ChannelKind.EMAIL: frozenset(),
}


def _check_secrets(channel: Channel, found: Mapping[str, str]) -> None:
    for name in sorted(_NEEDED[channel.kind] - found.keys()):
        raise _refused(name, "This kind of channel needs it")
    for name, value in found.items():
        if name != "url" and not (len(value) <= SECRET_MAX and value.isascii() and value.isprintable()):
            raise _refused(name, f"Use up to {SECRET_MAX} plain characters")
    if channel.kind == ChannelKind.SLACK_BOT and not channel.slack_channel:
        raise _refused("slack_channel", "Name the Slack channel by its ID, like C0123456789")
    if "url" in found:
        _host(found["url"])


def _host(url: str) -> str:
    """Return the host of an address that messages may be sent to."""
    try:
        return parse(url, policy()).host
    except TargetError as error:
        raise _refused("url", str(error)) from error


def _recipients(kind: str, recipients: tuple[str, ...]) -> list[str]:
    found = list(dict.fromkeys(address.strip() for address in recipients if address.strip()))
    if kind != ChannelKind.EMAIL:
        return []
    if not 1 <= len(found) <= RECIPIENTS_MAX:
        raise _refused("recipients", f"Name 1 to {RECIPIENTS_MAX} recipients")
    for address in found:
        try:
            validate_email(address)
        except ValidationError as error:
            raise _refused("recipients", f"{address[:80]!r} is no e-mail address") from error
    return found


def _names(field: str, names: tuple[str, ...]) -> list[str]:
    found = sorted({name.strip() for name in names if name.strip()})
    if len(found) > NAMES_MAX or any(len(name) > 253 for name in found):
        raise _refused(field, f"Name up to {NAMES_MAX}, each with up to 253 characters")
    return found


def _refused(field: str, detail: str) -> ApplicationError:
    return ApplicationError("channel_not_valid", detail, field=field)
