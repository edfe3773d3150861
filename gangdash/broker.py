"""The folder that carries Celery's messages in embedded mode, made safe for several processes.

kombu writes a message under its final name, so that a worker which looks in between takes an empty file and dies of
it (seen after a minute and a half of the demo). Here a message is written aside and renamed into place. Everything
else is kombu's filesystem transport.
"""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from time import monotonic
from typing import Any

from kombu.exceptions import ChannelError
from kombu.transport import TRANSPORT_ALIASES, filesystem
from kombu.utils.json import dumps


class Channel(filesystem.Channel):
    """A channel whose messages appear whole or not at all."""

    def _put(self, queue: str, payload: Any, **_kwargs: Any) -> None:  # type: ignore[override] # as kombu itself
        """Put a message on a queue; names sort by time, as the reader takes the first."""
        folder = Path(self.data_folder_out)
        name = f"{round(monotonic() * 1000)}_{uuid.uuid4()}.{queue}.msg"
        aside = folder / f".{name}.part"
        try:
            aside.write_text(dumps(payload), encoding="utf-8")
            aside.replace(folder / name)
        except OSError as error:
            raise ChannelError(f"Cannot add a message to {os.fspath(folder)}") from error


class Transport(filesystem.Transport):
    """kombu's filesystem transport with such channels."""

    Channel = Channel


def install() -> None:
    """Have ``filesystem://`` mean this transport."""
    TRANSPORT_ALIASES["filesystem"] = "gangdash.broker:Transport"
