"""The per-gang boundary of this package: a fault while looking for one gang's fixes costs that gang its fixes only."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

logger = logging.getLogger(__name__)

T = TypeVar("T")
U = TypeVar("U")


def safely(gang: str, do: Callable[[], T], otherwise: U) -> T | U:
    """Return what ``do`` returns, or ``otherwise`` where it fails; the fault is logged with the gang's name."""
    try:
        return do()
    except Exception:  # per-gang boundary: the verdict stands without fixes
        logger.exception("fixes_failed", extra={"gang": gang})
        return otherwise
