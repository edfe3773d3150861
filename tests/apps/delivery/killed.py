"""Run as a module with an empty state folder: sends messages, and SIGKILL ends the sender at one step after another.

Each sender is a fork on a real database file, so what it had not committed is gone as it is when a machine dies.
Prints, as JSON, what a server received for each death, and what it received from four senders at once.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import django

django.setup()

from celery import current_app  # noqa: E402 - models need the set-up above
from django.core.management import call_command  # noqa: E402
from django.db import connections, transaction  # noqa: E402

from apps.accounts.models import User  # noqa: E402
from apps.delivery import claims, digests, sending, services  # noqa: E402
from apps.delivery.carriers import carry  # noqa: E402
from apps.delivery.channels import ChannelValues, channel_create  # noqa: E402
from apps.delivery.choices import ChannelKind, DeliveryKind  # noqa: E402
from apps.delivery.messages import Message  # noqa: E402
from apps.delivery.models import Channel, Delivery  # noqa: E402
from tests.apps.delivery.far_side import FarSide, far_side  # noqa: E402

NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
LATER = NOW + timedelta(hours=2)
ALERTS_AT_ONCE = 40
ASK = "send_task"


def die(*_arguments: Any, **_named: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def carry_then_die(*arguments: Any, **named: Any) -> None:
    carry(*arguments, **named)
    die()


class DeadlyLog:
    info = staticmethod(die)


STEPS: dict[str, tuple[object, str, object]] = {
    "before it is taken": (sending, "claim", die),
    "taken": (sending, "carry", die),
    "sent": (sending, "carry", carry_then_die),
    "about to record": (sending, "_record", die),
    "half recorded": (sending, "_record_on_channel", die),
    "recorded": (sending, "logger", DeadlyLog()),
}


def put(channel: Channel, key: str) -> None:
    message = Message(title=key)
    services.enqueue(channel=channel, kind=DeliveryKind.ALERT, key=key, message=message, now=NOW)


def in_a_child(work: Callable[[], object]) -> int:
    """Do something in a process of its own and return its process id."""
    connections.close_all()
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    return child


def ended_by(child: int) -> int:
    return os.WTERMSIG(os.waitpid(child, 0)[1])


def send_and_die(owner: object, name: str, deadly: object) -> None:
    setattr(owner, name, deadly)
    sending.send_due(now=NOW)


def recover() -> None:
    """Send as the next ticks would: the first ones only see the dead claim."""
    for _ in range(2):
        sending.send_due(now=NOW)
        time.sleep(claims.HOLD_SECONDS * 1.5)
    for _ in range(2):
        sending.send_due(now=LATER)


def received(side: FarSide) -> list[list[object]]:
    """Return key and whether a repeat was announced, in body and header, and forget it."""
    found: list[list[object]] = []
    for request in side.requests:
        flags = {request.content["may_be_repeated"], request.headers["x-gangdash-may-repeat"] == "true"}
        found.append([request.content["key"], *flags])
    side.requests.clear()
    return found


def deaths_while_sending(channel: Channel, side: FarSide) -> dict[str, object]:
    found: dict[str, object] = {}
    for step, (owner, name, deadly) in STEPS.items():
        put(channel, step)
        ended = ended_by(in_a_child(partial(send_and_die, owner, name, deadly)))
        recover()
        state = Delivery.objects.get(key=step).state
        found[step] = {"signal": ended, "received": received(side), "state": state}
    return found


def death_before_the_commit(channel: Channel) -> dict[str, object]:
    def change() -> None:
        with transaction.atomic():
            put(channel, "undone")
            die()

    ended = ended_by(in_a_child(change))
    return {"signal": ended, "rows": Delivery.objects.filter(key="undone").count()}


def death_after_the_commit(channel: Channel, side: FarSide) -> dict[str, object]:
    def change() -> None:
        setattr(current_app, ASK, die)
        put(channel, "unasked")

    ended = ended_by(in_a_child(change))
    sending.send_due(now=NOW)
    return {"signal": ended, "received": received(side)}


def death_while_folding(channel: Channel, side: FarSide) -> dict[str, object]:
    Channel.objects.filter(pk=channel.pk).update(digest_after=2)
    for at in range(4):
        put(channel, f"fold {at}")
    ended = ended_by(in_a_child(lambda: send_and_die(digests, "headline", die)))
    untouched = Delivery.objects.filter(key__startswith="fold", state="due").count()
    sending.send_due(now=LATER + timedelta(days=1))
    Channel.objects.filter(pk=channel.pk).update(digest_after=None)
    parts = [len(request.content.get("parts", [])) for request in side.requests]
    side.requests.clear()
    return {"signal": ended, "untouched": untouched, "parts": parts}


def senders_at_once(channel: Channel, side: FarSide) -> dict[str, object]:
    for at in range(ALERTS_AT_ONCE):
        put(channel, f"at once {at}")

    def work() -> None:
        for _ in range(200):
            sending.send_due(now=NOW)
            if not Delivery.objects.filter(state="due").exists():
                return

    children = [in_a_child(work) for _ in range(4)]
    signals = [ended_by(child) for child in children]
    keys = [key for key, *_flags in received(side)]
    return {"signals": signals, "keys": keys, "due": Delivery.objects.filter(state="due").count()}


def main() -> None:
    call_command("migrate", verbosity=0)
    claims.HOLD_SECONDS = 0.2
    setattr(current_app, ASK, lambda *_arguments, **_named: None)
    admin = User.objects.create_user("admin")
    with far_side() as side:
        values = ChannelValues(name="hook", url=side.url, digest_after=None)
        channel = channel_create(kind=ChannelKind.WEBHOOK, values=values, actor=admin).channel
        found = {
            "sending": deaths_while_sending(channel, side),
            "before commit": death_before_the_commit(channel),
            "after commit": death_after_the_commit(channel, side),
            "folding": death_while_folding(channel, side),
        }
        claims.HOLD_SECONDS = 60.0
        found["at once"] = senders_at_once(channel, side)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
