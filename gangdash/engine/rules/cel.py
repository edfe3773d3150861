"""Does a device meet a CEL selector? A small evaluator for the forms that device selectors really use.

Understood: ``device.driver``, ``device.attributes["domain"].name``, ``device.capacity["domain"].name`` with
``compareTo``, ``isGreaterThan`` and ``isLessThan`` of ``quantity("..")``, literals, lists, comparisons,
``in``, ``!``, ``&&``, ``||``, parentheses, ``startsWith``, ``endsWith`` and ``contains``. Anything else is
``NotModelled``: never a guess. Relies on the facts of one device; costs and type checks are left out.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

from gangdash.engine.model.dra import Device

Node = Callable[["DeviceView"], Any]

_TOKEN = re.compile(
    r"""\s*(?:(?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<number>\d+)|(?P<name>[A-Za-z_]\w*)"""
    r"""|(?P<symbol>&&|\|\||==|!=|<=|>=|[<>!()\[\].,-]))"""
)
_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_STRING_METHODS: Mapping[str, Callable[[str, str], bool]] = {
    "startsWith": str.startswith,
    "endsWith": str.endswith,
    "contains": lambda text, part: part in text,
}
_UNITS = {
    "": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15,
    "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50,
}  # fmt: skip


class NotModelledError(Exception):
    """The expression uses a form that this evaluator does not understand."""


class CelRuntimeError(Exception):
    """The expression is understood and fails on this device, as it would in the scheduler."""


@dataclass(frozen=True, slots=True)
class DeviceView:
    """A device as an expression sees it: names without a domain belong to the driver's."""

    driver: str
    device: Device

    def member(self, kind: str, domain: str, name: str) -> Any:
        values: Mapping[str, Any] = self.device.attributes if kind == "attributes" else self.device.capacity
        qualified = f"{domain}/{name}"
        if qualified in values:
            return values[qualified]
        if domain == self.driver and name in values:
            return values[name]
        raise CelRuntimeError(f"no such key: {name}")

    def names(self, kind: str, domain: str) -> frozenset[str]:
        values: Mapping[str, Any] = self.device.attributes if kind == "attributes" else self.device.capacity
        return frozenset(key.rpartition("/")[2] for key in values if (key.rpartition("/")[0] or self.driver) == domain)


def matches(expression: str, driver: str, device: Device) -> bool:
    """Return whether the device meets the expression; raises ``NotModelledError`` or ``CelRuntimeError``."""
    try:
        result = _compiled(expression)(DeviceView(driver, device))
    except TypeError as error:
        raise CelRuntimeError(f"no such overload: {error}") from error
    if not isinstance(result, bool):
        raise CelRuntimeError(f"CEL expression did not return a bool: {expression}")
    return result


@lru_cache(maxsize=256)
def _compiled(expression: str) -> Node:
    parser = _Parser(_tokens(expression), expression)
    node = parser.either()
    parser.end()
    return node


def _tokens(expression: str) -> list[tuple[str, str]]:
    out, position = [], 0
    text = expression.strip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise NotModelledError(expression)
        out.append((match.lastgroup or "", match.group(match.lastgroup or 0)))
        position = match.end()
    return out


class _Parser:
    """Recursive descent, loosest operator first; every method returns a function of the device."""

    def __init__(self, tokens: list[tuple[str, str]], expression: str) -> None:
        self._tokens = tokens
        self._at = 0
        self._expression = expression

    def _peek(self) -> str:
        return self._tokens[self._at][1] if self._at < len(self._tokens) else ""

    def _take(self, *expected: str) -> str:
        if self._at >= len(self._tokens) or (expected and self._peek() not in expected):
            raise NotModelledError(self._expression)
        self._at += 1
        return self._tokens[self._at - 1][1]

    def _take_kind(self, kind: str) -> str:
        if self._at >= len(self._tokens) or self._tokens[self._at][0] != kind:
            raise NotModelledError(self._expression)
        return self._take()

    def end(self) -> None:
        if self._at != len(self._tokens):
            raise NotModelledError(self._expression)

    def either(self) -> Node:
        node = self._both()
        while self._peek() == "||":
            self._take()
            node = _or(node, self._both())
        return node

    def _both(self) -> Node:
        node = self._comparison()
        while self._peek() == "&&":
            self._take()
            node = _and(node, self._comparison())
        return node

    def _comparison(self) -> Node:
        left = self._unary()
        symbol = self._peek()
        if symbol in _COMPARISONS:
            self._take()
            return _compare(_COMPARISONS[symbol], left, self._unary())
        if symbol == "in":
            self._take()
            return _contained(left, self._unary())
        return left

    def _unary(self) -> Node:
        if self._peek() == "!":
            self._take()
            inner = self._unary()
            return lambda device: not _truth(inner(device))
        if self._peek() == "-":
            self._take()
            number = -int(self._take_kind("number"))
            return lambda _: number
        return self._methods(self._primary())

    def _methods(self, node: Node) -> Node:
        while self._peek() == ".":
            self._take()
            name = self._take_kind("name")
            self._take("(")
            argument = self.either()
            self._take(")")
            node = _method(name, node, argument, self._expression)
        return node

    def _primary(self) -> Node:
        kind, text = self._tokens[self._at] if self._at < len(self._tokens) else ("", "")
        if kind == "string":
            value = _unquoted(self._take())
            return lambda _: value
        if kind == "number":
            number = int(self._take())
            return lambda _: number
        if text == "(":
            self._take()
            node = self.either()
            self._take(")")
            return node
        if text == "[":
            return self._list()
        return self._named(self._take_kind("name"))

    def _list(self) -> Node:
        self._take("[")
        items: list[Node] = []
        while self._peek() != "]":
            items.append(self.either())
            if self._peek() == ",":
                self._take()
        self._take("]")
        return lambda device: [item(device) for item in items]

    def _named(self, name: str) -> Node:
        if name in ("true", "false"):
            value = name == "true"
            return lambda _: value
        if name == "quantity":
            self._take("(")
            amount = _quantity(_unquoted(self._take_kind("string")), self._expression)
            self._take(")")
            return lambda _: amount
        if name != "device":
            raise NotModelledError(self._expression)
        return self._device()

    def _device(self) -> Node:
        self._take(".")
        field = self._take_kind("name")
        if field == "driver":
            return lambda device: device.driver
        if field not in ("attributes", "capacity"):
            raise NotModelledError(self._expression)
        self._take("[")
        domain = _unquoted(self._take_kind("string"))
        self._take("]")
        if self._peek() != ".":
            return lambda device: device.names(field, domain)
        self._take(".")
        name = self._take_kind("name")
        return lambda device: device.member(field, domain, name)


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise CelRuntimeError("no such overload")
    return value


def _settled(node: Node, device: DeviceView) -> bool | CelRuntimeError:
    """Evaluate one side of a logical operator: CEL lets the other side decide when this one fails."""
    try:
        return _truth(node(device))
    except CelRuntimeError as error:
        return error


def _and(left: Node, right: Node) -> Node:
    return lambda device: _joined(left, right, device, decides=False)


def _or(left: Node, right: Node) -> Node:
    return lambda device: _joined(left, right, device, decides=True)


def _joined(left: Node, right: Node, device: DeviceView, *, decides: bool) -> bool:
    first, second = _settled(left, device), _settled(right, device)
    if first is decides or second is decides:
        return decides
    for side in (first, second):
        if isinstance(side, CelRuntimeError):
            raise side
    return not decides


def _compare(compare: Callable[[Any, Any], bool], left: Node, right: Node) -> Node:
    return lambda device: compare(left(device), right(device))


def _contained(left: Node, right: Node) -> Node:
    return lambda device: left(device) in right(device)


def _method(name: str, node: Node, argument: Node, expression: str) -> Node:
    if name in _STRING_METHODS:
        call = _STRING_METHODS[name]
        return lambda device: call(node(device), argument(device))
    if name == "compareTo":
        return lambda device: (node(device) > argument(device)) - (node(device) < argument(device))
    if name == "isGreaterThan":
        return lambda device: bool(node(device) > argument(device))
    if name == "isLessThan":
        return lambda device: bool(node(device) < argument(device))
    raise NotModelledError(expression)


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1])


def _quantity(text: str, expression: str) -> Decimal:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGTP]i|[kMGTP]?)", text)
    if match is None:
        raise NotModelledError(expression)
    return Decimal(match.group(1)) * _UNITS[match.group(2)]
