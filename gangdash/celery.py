"""The Celery app. Its settings are Django's, its tasks are found in each app's tasks.py.

The schedule calls tasks by name (settings), so that no app imports another for it. A worker that has just started
asks for the first reading at once instead of waiting for the next tick.
"""

from __future__ import annotations

import os
from typing import Any

from celery import Celery
from celery.signals import worker_ready

from gangdash import broker

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gangdash.settings.embedded")

POLL_TASK = "collector.poll_clusters"

broker.install()
app = Celery("gangdash")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_ready.connect
def ask_for_first_poll(sender: Any, **_signal: Any) -> None:
    """Queue one poll as soon as a worker of the collecting queue is up."""
    if app.conf.task_default_queue in sender.app.amqp.queues.consume_from:
        app.send_task(POLL_TASK, expires=60)
