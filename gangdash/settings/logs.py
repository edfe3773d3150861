"""Logging of every process: structlog events on standard error, readable lines or one JSON object a line.

Logs of libraries take the same form. Constant messages with fields; values that could be secrets are dropped.
"""

from __future__ import annotations

from typing import Any

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

# Names under which a secret could be logged by mistake. The value is replaced, the field stays visible.
SECRET_WORDS = ("password", "token", "secret", "authorization", "cookie", "api_key")


def hide_secrets(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Replace the value of each field whose name sounds like a secret."""
    for name in event:
        if any(word in name.lower() for word in SECRET_WORDS):
            event[name] = "***"
    return event


def logging_config(*, style: str, level: str) -> dict[str, Any]:
    """Return Django's LOGGING and set structlog up to feed it."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        hide_secrets,
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.processors.StackInfoRenderer(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"events": _formatter(style, shared)},
        "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "events"}},
        "root": {"handlers": ["console"], "level": level},
        "loggers": {
            # Django's own handlers would print a second time or mail; celery's beat prints each tick at INFO.
            "django": {"handlers": [], "level": level, "propagate": True},
            "django.server": {"handlers": [], "level": level, "propagate": True},
            # Requests with a made-up host get their 400; a traceback each would let strangers fill the log.
            "django.security.DisallowedHost": {"level": "CRITICAL"},
            # At DEBUG it writes the path of each request, which for a webhook is its secret.
            "urllib3.connectionpool": {"level": "INFO"},
            "celery.beat": {"level": "WARNING"},
            "celery.worker.strategy": {"level": "WARNING"},
            "celery.app.trace": {"level": "WARNING"},
        },
    }


def _formatter(style: str, shared: list[Processor]) -> dict[str, Any]:
    last: list[Processor] = [structlog.stdlib.ProcessorFormatter.remove_processors_meta]
    if style == "json":
        last += [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    else:
        last += [structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)]
    return {"()": structlog.stdlib.ProcessorFormatter, "foreign_pre_chain": shared, "processors": last}
