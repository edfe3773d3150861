"""Device selectors: what the small evaluator understands, what fails on a device, and what it refuses."""

from __future__ import annotations

import pytest

from gangdash.engine.model.dra import Device
from gangdash.engine.rules import cel

DRIVER = "gpu.example.com"
DEVICE = Device(
    "gpu-0",
    {"model": "H100", "other.example.com/model": "X", "index": 3, "healthy": True},
    {"memory": 80 * 2**30},
)


@pytest.mark.parametrize(
    "expression, expected",
    [
        ('device.driver == "gpu.example.com"', True),
        ("device.driver == 'gpu.example.com'", True),
        ('device.driver != "gpu.example.com"', False),
        ('device.attributes["gpu.example.com"].model == "H100"', True),
        ('device.attributes["other.example.com"].model == "X"', True),
        ('device.attributes["gpu.example.com"].index >= 3', True),
        ('device.attributes["gpu.example.com"].index > 3', False),
        ('device.attributes["gpu.example.com"].index < -1', False),
        ('device.attributes["gpu.example.com"].healthy', True),
        ('!device.attributes["gpu.example.com"].healthy', False),
        ('device.attributes["gpu.example.com"].model in ["A100", "H100"]', True),
        ('device.attributes["gpu.example.com"].model in []', False),
        ('"model" in device.attributes["gpu.example.com"]', True),
        ('"model" in device.attributes["other.example.com"]', True),
        ('"serial" in device.attributes["gpu.example.com"]', False),
        ('"memory" in device.capacity["gpu.example.com"]', True),
        ('device.attributes["gpu.example.com"].model.startsWith("H")', True),
        ('device.attributes["gpu.example.com"].model.endsWith("200")', False),
        ('device.attributes["gpu.example.com"].model.contains("10")', True),
        ('device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0', True),
        ('device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) == 0', True),
        ('device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("80Gi"))', False),
        ('device.capacity["gpu.example.com"].memory.isLessThan(quantity("90G"))', True),
        ('device.capacity["gpu.example.com"].memory.isLessThan(quantity("86G"))', True),
        ('device.capacity["gpu.example.com"].memory.isLessThan(quantity("85G"))', False),
        ('true && (false || device.driver == "gpu.example.com")', True),
        ('device.attributes["none"].x == 1 || true', True),
        ('false && device.attributes["none"].x == 1', False),
        (r'device.driver == "gpu\.example.com"', True),
    ],
)
def test_expressions(expression: str, *, expected: bool) -> None:
    assert cel.matches(expression, DRIVER, DEVICE) is expected


@pytest.mark.parametrize(
    "expression",
    [
        'device.attributes["gpu.example.com"].serial == "1"',
        'device.attributes["none"].x == 1 && true',
        'device.attributes["gpu.example.com"].index',
        'device.attributes["gpu.example.com"].model < 3',
        'device.attributes["gpu.example.com"].model && true',
        '!device.attributes["gpu.example.com"].model',
    ],
)
def test_what_fails_on_the_device(expression: str) -> None:
    with pytest.raises(cel.CelRuntimeError):
        cel.matches(expression, DRIVER, DEVICE)


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "size(device.attributes) > 0",
        "device.attributes.exists(a, true)",
        'device.attributes["gpu.example.com"].model.matches("H.*")',
        'semver("1.2.3").compareTo(semver("1.2.4")) < 0',
        'quantity("many") == quantity("1")',
        "device.name == 'x'",
        "device",
        "true ? true : false",
        "(true",
        "true true",
        "[true",
        'device.attributes["a"',
        "device.driver ==",
    ],
)
def test_what_is_not_understood_is_never_guessed(expression: str) -> None:
    with pytest.raises(cel.NotModelledError):
        cel.matches(expression, DRIVER, DEVICE)
