"""Whatever happens in whatever order, each message arrives, and a second time only with a warning.

Random histories of new messages, answers, deaths before and after sending, and a clock that jumps both ways; the far
side is a record of what arrived.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.delivery import claims, sending
from apps.delivery.choices import ChannelKind, DeliveryKind, DeliveryState
from apps.delivery.messages import Envelope, Message, Severity
from apps.delivery.models import Channel, Delivery
from apps.delivery.outcomes import Outcome, Verdict
from apps.delivery.services import enqueue
from tests.apps.delivery.conftest import NOW

pytestmark = pytest.mark.django_db
KINDS = (DeliveryKind.ALERT, DeliveryKind.ALERT, DeliveryKind.ALERT, DeliveryKind.REPORT)
FOLLOWING = (DeliveryKind.UPDATE, DeliveryKind.RESOLVED)


class DeathError(BaseException):
    """The process is gone."""


@dataclass
class World:
    """``steady`` never goes back; ``now`` may."""

    chance: random.Random
    channel: Channel
    now: datetime = NOW
    steady: float = 0.0
    is_calm: bool = False
    firsts: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    arrivals: list[tuple[str, bool]] = field(default_factory=list)

    def carry(self, _channel: Channel, _message: Message, envelope: Envelope, *, reply_to: str = "") -> Outcome:
        if self.is_calm:
            return self._arrive(envelope)
        chance = self.chance.random()
        if chance < 0.15:
            raise DeathError
        if chance < 0.3:
            self._arrive(envelope)
            raise DeathError
        if chance < 0.5:
            return Outcome(Verdict.AGAIN, "busy", retry_after=self.chance.choice(["", "30", "900"]))
        if chance < 0.6:
            self._arrive(envelope)
            return Outcome(Verdict.AGAIN, "cut", may_have_arrived=True)
        return self._arrive(envelope)

    def _arrive(self, envelope: Envelope) -> Outcome:
        self.arrivals += [(key, envelope.may_repeat) for key in [part.key for part in envelope.parts] or [envelope.key]]
        return Outcome(Verdict.SENT, remote_id="1.1")

    def put(self) -> None:
        kind = self.chance.choice(KINDS)
        thread = ""
        if self.firsts and self.chance.random() < 0.3:
            kind, thread = self.chance.choice(FOLLOWING), self.chance.choice(self.firsts)
        key = f"m{len(self.keys)}"
        message = Message(title=key, severity=self.chance.choice(list(Severity)))
        enqueue(channel=self.channel, kind=kind, key=key, message=message, thread=thread, now=self.now)
        self.keys.append(key)
        if not thread:
            self.firsts.append(key)

    def jump(self) -> None:
        self.now += timedelta(minutes=self.chance.choice([-600_000, -120, -3, 1, 5, 90, 600_000]))

    def send(self) -> None:
        passed = self.chance.choice([1.0, 5.0, 40.0])
        self.steady += passed
        self.now += timedelta(seconds=passed)
        try:
            sending.send_due(now=self.now)
        except DeathError:
            return


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(min_value=0, max_value=2**32))
def test_each_message_arrives_and_twice_only_with_a_warning(seed: int) -> None:
    chance = random.Random(seed)
    Channel.objects.all().delete()
    claims._seen.clear()
    kind = chance.choice([ChannelKind.WEBHOOK, ChannelKind.SLACK_BOT])
    channel = Channel.objects.create(name="any", kind=kind, digest_after=chance.choice([2, 5, None]))
    world = World(chance, channel)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sending, "carry", world.carry)
        for module in (sending, claims):
            patch.setattr(module, "time", SimpleNamespace(monotonic=lambda: world.steady))
        for _ in range(60):
            chance.choice([world.put, world.put, world.send, world.send, world.send, world.jump])()
        world.is_calm = True
        for _ in range(40):
            world.steady += claims.HOLD_SECONDS
            world.now += timedelta(hours=1)
            sending.send_due(now=world.now)
    assert not Delivery.objects.filter(state=DeliveryState.DUE).exists()
    told = Counter(key for key, _warned in world.arrivals)
    assert set(told) == set(world.keys)
    for at, (key, warned) in enumerate(world.arrivals):
        assert warned or key not in {earlier for earlier, _warned in world.arrivals[:at]}
