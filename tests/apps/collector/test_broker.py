"""Messages in the folder are whole whenever they can be seen."""

from __future__ import annotations

import threading
from pathlib import Path
from queue import Empty
from typing import Any

import pytest
from celery import Celery
from kombu import Connection

from gangdash import broker


@pytest.fixture
def connection(tmp_path: Path) -> Any:
    broker.install()
    folder = str(tmp_path / "queue")
    (tmp_path / "queue").mkdir()
    options = {"data_folder_in": folder, "data_folder_out": folder, "control_folder": str(tmp_path / "control")}
    with Connection("filesystem://", transport_options=options) as found:
        yield found


def test_a_worker_that_looks_at_any_moment_finds_whole_messages(connection: Any) -> None:
    """A reader that never rests meets half-written messages of the original transport within a second."""
    sender, reader = connection.channel(), connection.channel()
    got: list[int] = []
    faults: list[Exception] = []
    done = threading.Event()

    def read() -> None:
        while not (done.is_set() and len(got) >= 300):
            try:
                got.append(reader._get("collect")["n"])
            except Empty:
                continue
            except ValueError as fault:
                faults.append(fault)
                return

    thread = threading.Thread(target=read)
    thread.start()
    for number in range(300):
        sender._put("collect", {"n": number, "filling": "x" * 5000})
    done.set()
    thread.join(timeout=30)
    assert faults == []
    assert sorted(got) == list(range(300))


def test_a_task_sent_is_the_task_received(connection: Any, tmp_path: Path) -> None:
    app = Celery("test", broker="filesystem://", set_as_current=False)
    app.conf.update(broker_transport_options=connection.transport_options, task_default_queue="collect")
    app.send_task("some.task", args=[1])
    message = connection.channel()._get("collect")
    assert message["headers"]["task"] == "some.task"
    assert not [path for path in (tmp_path / "queue").iterdir() if path.name.endswith(".part")]
