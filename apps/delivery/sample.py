"""A message that looks like a real one, for the test button: invented names, the real form."""

from __future__ import annotations

from apps.delivery.messages import Fact, Line, Link, Message


def sample_message(*, actor: str, channel: str) -> Message:
    """Return the sample that somebody sends to a channel."""
    return Message(
        label="No fit",
        code="DOMAIN_BUSY",
        cluster="example",
        title="1 gang waits for 48 GPUs",
        text="This is a test; nothing is wrong. Needs 48 GPUs in one rack; the best rack, rack-07, has 36 free.",
        lines=(Line("team-a/llama-70b-0", "needs 12 nodes, short by 3, waits 30 min", "/"),),
        facts=(
            Fact("Who acts", "Cluster admin"),
            Fact("Will waiting help?", "No, every holder serves"),
            Fact("Certainty", "Proved"),
        ),
        fixes=("Owner of llama-70b-0: relax rack to block. Evicts nobody.",),
        links=(Link("Open triage", "/", "open_triage"), Link("Open channels", "/channels/", "open_channels")),
        context=f"Test of channel {channel}, sent by {actor}.",
        summary="Test from gangdash: nothing is wrong.",
        short="rack-07 busy, 1 gang, 48 GPUs, cluster admin",
        document={"test": True},
    )
