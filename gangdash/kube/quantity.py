"""Kubernetes quantities and durations as exact numbers.

Relies on integer arithmetic only: a quantity such as ``0.1`` has no exact float. Amounts that do
not fit the unit asked for are rounded away from zero and capped at 64 bits, as the API server's own
library does. Durations are Go's (``1h30m``, ``300ms``). Leaves out formatting: nothing writes them.
"""

from __future__ import annotations

import re
from functools import lru_cache

_QUANTITY = re.compile(r"([+-]?)(\d*)(?:\.(\d*))?(?:([KMGTPE]i|[numkMGTPE]?)|[eE]([+-]?\d{1,9}))", re.ASCII)
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_INT64_MAX = 2**63 - 1
_LONGEST = 64
"""Characters; the longest quantity that a server writes has 25."""

_DURATION = re.compile(r"([+-]?)((?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+|0)", re.ASCII)
_DURATION_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


class QuantityError(ValueError):
    """Text that is no quantity or no duration."""


def value(quantity: str | float) -> int:
    """Return the amount in whole units, rounded away from zero: ``1500m`` is 2."""
    return _scaled(str(quantity), 0)


def milli_value(quantity: str | float) -> int:
    """Return the amount in thousandths, rounded away from zero: ``1500m`` is 1500."""
    return _scaled(str(quantity), 3)


@lru_cache(maxsize=16384)
def _scaled(text: str, scale: int) -> int:
    match = _QUANTITY.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None or not (match[2] or match[3]):
        raise QuantityError(f"not a quantity: {text[:_LONGEST]!r}")
    sign, whole, fraction, suffix, exponent = match.groups(default="")
    mantissa = int(whole + fraction or "0")
    shift = _BINARY.get(suffix, 0)
    power = scale - len(fraction) + (int(exponent) if exponent else _DECIMAL.get(suffix, 0))
    amount = min(_rounded_up(mantissa << shift, power), _INT64_MAX)
    return -amount if sign == "-" else amount


def _rounded_up(mantissa: int, power: int) -> int:
    """Return mantissa x 10^power, rounded up; a power beyond any real amount is cut short before it is computed."""
    if power >= 0:
        return mantissa * int(10 ** min(power, _LONGEST))
    return -(-mantissa // int(10 ** min(-power, 2 * _LONGEST)))


def seconds(duration: str) -> float:
    """Return a Go duration in seconds; ``-1s`` is -1."""
    match = _DURATION.fullmatch(duration) if len(duration) <= _LONGEST else None
    if match is None:
        raise QuantityError(f"not a duration: {duration[:_LONGEST]!r}")
    total = sum(float(number) * _SECONDS[unit] for number, unit in _DURATION_PART.findall(match[2]))
    return -total if match[1] == "-" else total
