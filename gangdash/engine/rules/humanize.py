"""Numbers as the scheduler prints them in its messages.

Mirrors fmt.Sprint, strconv.FormatFloat(x, 'g', 3, 64) and go-humanize's FtoaWithDigits as the scheduler
uses them (KAI d5bc503a), so that texts can be compared.
"""

from __future__ import annotations

from decimal import Decimal

from gangdash.engine.session import UNLIMITED

CORES = 1000
GIGABYTES = 1_000_000_000


def amount(value: float, unit: float = 1) -> str:
    """Return a quantity in units, cut (not rounded) to three decimals, or ``Unlimited``."""
    return "Unlimited" if value == UNLIMITED else digits(value / unit)


def digits(value: float, places: int = 3) -> str:
    """Return at most ``places`` decimals of the shortest exact notation, without trailing zeros."""
    text = f"{value:.6f}".rstrip("0").rstrip(".")
    whole, _, part = text.partition(".")
    part = part[:places].rstrip("0")
    return f"{whole}.{part}" if part else whole


def shortest(value: float) -> str:
    """Return a float as Go prints it with %v."""
    number = float(value)
    if number == int(number) and abs(number) < 1e21:
        return str(int(number))
    exponent = Decimal(repr(number)).adjusted()
    if -5 < exponent < 21:
        return format(Decimal(repr(number)), "f")
    return _scientific(repr(number))


def three_digits(value: float) -> str:
    """Return a number with three significant digits, in scientific notation where Go takes it."""
    text = f"{float(value):.3g}"
    return text if "e" not in text else _scientific(text)


def _scientific(text: str) -> str:
    mantissa, _, exponent = text.lower().partition("e")
    sign = "-" if exponent.startswith("-") else "+"
    return f"{mantissa}e{sign}{exponent.lstrip('+-').zfill(2)}"
