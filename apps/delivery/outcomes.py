"""What the answer of a far side means: delivered, try again, or never again, and then whether for this message alone.

| answer | Slack webhook | Slack bot | webhook |
|---|---|---|---|
| delivered | 200 with body ``ok`` | 200 with ``ok: true`` | any 2xx |
| again | 408, 425, 429, 5xx | those, and ``BOT_PASSING`` | 408, 425, 429, 5xx |
| never: message | 400, 413, 422 | any other error | 400, 413, 422 |
| never: channel | other bodies, 3xx, other 4xx | other bodies, 3xx, 4xx, ``BOT_CHANNEL`` | 3xx, other 4xx |

No answer at all (refused, silent, cut, TLS trouble, name not resolved) is tried again: certificates and names get
repaired. An address that settings forbid stops the channel. Mail is told apart by the server's own code: 4xx passes,
5xx does not; a refused login or sender is about the channel.
"""

from __future__ import annotations

import smtplib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec

from apps.delivery.choices import ChannelKind, StopScope
from apps.delivery.targets import TargetError, UnresolvedError
from apps.delivery.texts import clip, one_line
from apps.delivery.transport import Reply, TransportError

PASSING = frozenset({408, 425, 429})
ABOUT_MESSAGE = frozenset({400, 413, 422})
SLACK_400_CHANNEL = frozenset({"invalid_token", "no_team", "no_service", "no_active_hooks", "channel_not_found"})
"""Answers with status 400 or 404 that Slack gives whatever the message is."""
BOT_PASSING = frozenset(
    {"ratelimited", "rate_limited", "internal_error", "fatal_error", "service_unavailable", "request_timeout",
     "team_added_to_org", "message_limit_exceeded"}
)  # fmt: skip
BOT_CHANNEL = frozenset(
    {"invalid_auth", "not_authed", "token_revoked", "token_expired", "account_inactive", "channel_not_found",
     "not_in_channel", "is_archived", "missing_scope", "no_permission", "not_allowed_token_type", "access_denied",
     "org_login_required", "ekm_access_denied", "enterprise_is_restricted", "team_access_not_granted",
     "restricted_action", "restricted_action_read_only_channel", "restricted_action_thread_only_channel",
     "two_factor_setup_required", "accesslimited", "deprecated_endpoint", "method_deprecated", "user_is_inactive"}
)  # fmt: skip
_ABOUT_ALL_MAIL = (
    smtplib.SMTPConnectError, smtplib.SMTPHeloError, smtplib.SMTPAuthenticationError, smtplib.SMTPSenderRefused
)  # fmt: skip


class Verdict(Enum):
    SENT = "sent"
    AGAIN = "again"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Outcome:
    """``retry_after`` and ``date`` are headers as they came; ``may_have_arrived`` is asked only of ``AGAIN``."""

    verdict: Verdict
    detail: str = ""
    scope: StopScope = StopScope.NONE
    retry_after: str = ""
    date: str = ""
    may_have_arrived: bool = False
    remote_id: str = ""


def of_reply(kind: str, reply: Reply) -> Outcome:
    """Return what an answer over HTTP means for a channel of this kind."""
    if reply.status in PASSING or reply.status >= 500:
        return _again(reply)
    if kind == ChannelKind.WEBHOOK:
        return _webhook(reply)
    return _slack_bot(reply) if kind == ChannelKind.SLACK_BOT else _slack_webhook(reply)


def of_error(error: TargetError | TransportError) -> Outcome:
    """Return what it means that no answer came."""
    if isinstance(error, TransportError):
        return Outcome(Verdict.AGAIN, error.detail, may_have_arrived=error.may_have_arrived)
    if isinstance(error, UnresolvedError):
        return Outcome(Verdict.AGAIN, str(error))
    return Outcome(Verdict.NEVER, str(error), StopScope.CHANNEL)


def of_mail_error(error: smtplib.SMTPException | OSError, *, host: str, is_handed_over: bool) -> Outcome:
    """Return what a mail server's refusal means; ``is_handed_over`` when the content was already on its way."""
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        codes = [code for code, _words in error.recipients.values()]
        words = f"{host} refuses every recipient ({', '.join(str(code) for code in sorted(set(codes)))})"
        return _mail(words, is_final=all(code >= 500 for code in codes), scope=StopScope.CHANNEL)
    if isinstance(error, smtplib.SMTPResponseException):
        is_about_all = isinstance(error, _ABOUT_ALL_MAIL)
        scope = StopScope.CHANNEL if is_about_all else StopScope.MESSAGE
        return _mail(f"{host} answered {error.smtp_code}", is_final=error.smtp_code >= 500, scope=scope)
    if isinstance(error, smtplib.SMTPNotSupportedError):
        return Outcome(Verdict.NEVER, f"{host} does not offer what the settings ask for", StopScope.CHANNEL)
    detail = f"{host} broke off" if is_handed_over else f"{host} cannot be reached"
    return Outcome(Verdict.AGAIN, detail, may_have_arrived=is_handed_over)


def _mail(detail: str, *, is_final: bool, scope: StopScope) -> Outcome:
    return Outcome(Verdict.NEVER, detail, scope) if is_final else Outcome(Verdict.AGAIN, detail)


def _again(reply: Reply) -> Outcome:
    return Outcome(
        Verdict.AGAIN,
        f"answered {reply.status}",
        retry_after=reply.headers.get("Retry-After", ""),
        date=reply.headers.get("Date", ""),
    )


def _never(reply: Reply, scope: StopScope, words: str = "") -> Outcome:
    return Outcome(Verdict.NEVER, f"answered {reply.status}{': ' + words if words else ''}", scope)


def _webhook(reply: Reply) -> Outcome:
    if 200 <= reply.status < 300:
        return Outcome(Verdict.SENT)
    return _never(reply, StopScope.MESSAGE if reply.status in ABOUT_MESSAGE else StopScope.CHANNEL)


def _slack_webhook(reply: Reply) -> Outcome:
    words = _error_word(reply.body)
    if reply.status == 200:
        if words == "ok":
            return Outcome(Verdict.SENT)
        return _never(reply, StopScope.CHANNEL, f"not ok but {words or 'nothing that Slack says'}")
    is_about_message = reply.status in ABOUT_MESSAGE and words not in SLACK_400_CHANNEL
    return _never(reply, StopScope.MESSAGE if is_about_message else StopScope.CHANNEL, words)


def _slack_bot(reply: Reply) -> Outcome:
    answer = _object(reply.body)
    if reply.status != 200 or not isinstance(answer.get("ok"), bool):
        return _never(reply, StopScope.CHANNEL, "" if reply.status != 200 else "not what Slack says")
    if answer["ok"]:
        return Outcome(Verdict.SENT, remote_id=str(answer.get("ts") or "")[:64])
    word = _error_word(str(answer.get("error", "")).encode())
    if word in BOT_PASSING:
        return Outcome(Verdict.AGAIN, word, retry_after=reply.headers.get("Retry-After", ""))
    return Outcome(Verdict.NEVER, word or "refused", StopScope.CHANNEL if word in BOT_CHANNEL else StopScope.MESSAGE)


def _error_word(body: bytes) -> str:
    """Return Slack's one word for what is wrong; anything longer is not repeated, as it may hold anything."""
    word = clip(one_line(body.decode("utf-8", "replace")), 64)
    return word if word.replace("_", "").isalnum() else ""


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        found = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return {}
    return found if isinstance(found, dict) else {}
