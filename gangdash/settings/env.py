"""Reads environment variables as typed values and tells every fault at once.

One `Env` serves a whole process: each reader returns a usable value even when the variable is wrong, notes the
fault, and `check()` stops the start with all of them. A secret may come from the file that `<NAME>_FILE` names.
Values of secrets never appear in a fault.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured

TRUE_WORDS = frozenset({"1", "true", "yes", "on"})
FALSE_WORDS = frozenset({"0", "false", "no", "off"})


@dataclass(frozen=True, slots=True)
class Fault:
    """One wrong variable: what is wrong with it and what to do."""

    name: str
    problem: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.name}: {self.problem}. {self.remedy}."


class Env:
    """Typed access to a mapping of variables; remembers which names were asked for."""

    def __init__(self, source: Mapping[str, str]) -> None:
        self.source = source
        self.faults: list[Fault] = []
        self.names: set[str] = set()

    def use(self, source: Mapping[str, str]) -> None:
        """Read from another mapping from now on, so that a test run does not see the user's variables."""
        self.source = source

    def check(self) -> None:
        """Stop the start when anything was wrong, naming every fault."""
        if self.faults:
            lines = "\n".join(f"  - {fault}" for fault in self.faults)
            raise ImproperlyConfigured(f"gangdash cannot start, {len(self.faults)} setting(s) are wrong:\n{lines}")

    def text(self, name: str, default: str = "") -> str:
        """Return the variable, or the default where it is missing or empty."""
        self.names.add(name)
        return self.source.get(name, "").strip() or default

    def secret(self, name: str, default: str = "") -> str:
        """Return the variable or the content of the file that `<name>_FILE` names; the file wins."""
        file_name = self.text(f"{name}_FILE")
        if not file_name:
            return self.text(name, default)
        self.names.add(name)
        try:
            content = Path(file_name).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or type(error).__name__
            self._fault(f"{name}_FILE", f"the file cannot be read ({reason})", "Name a readable text file")
            return default
        return content or default

    def flag(self, name: str, *, default: bool) -> bool:
        """Return a truth value."""
        word = self.text(name).lower()
        if word in TRUE_WORDS or word in FALSE_WORDS:
            return word in TRUE_WORDS
        if word:
            self._fault(name, "is not a truth value", "Use true or false")
        return default

    def integer(self, name: str, default: int, *, least: int, most: int | None = None) -> int:
        """Return a whole number inside its range."""
        return int(self._number(name, default, least=least, most=most, whole=True))

    def number(self, name: str, default: float, *, least: float, most: float | None = None) -> float:
        """Return a number inside its range."""
        return self._number(name, default, least=least, most=most, whole=False)

    def words(self, name: str, default: tuple[str, ...] = ()) -> list[str]:
        """Return a comma-separated list."""
        found = [word.strip() for word in self.text(name).split(",")]
        return [word for word in found if word] or list(default)

    def networks(self, name: str) -> tuple[IPv4Network | IPv6Network, ...]:
        """Return a comma-separated list of address ranges."""
        found = []
        for word in self.words(name):
            try:
                found.append(ip_network(word, strict=False))
            except ValueError:
                self._fault(name, "holds something that is no network", "Use ranges like 10.0.0.0/8,fd00::/8")
        return tuple(found)

    def addresses(self, name: str) -> dict[str, str]:
        """Return web addresses by name from ``NAME=URL,NAME=URL``; the name of a bare address is empty."""
        found: dict[str, str] = {}
        for word in self.words(name):
            before, sign, after = word.partition("=")
            key, url = (before.strip(), after.strip()) if sign and "://" not in before else ("", word)
            parts = urlsplit(url)
            if parts.scheme not in {"http", "https"} or not parts.hostname:
                self._fault(name, "holds something that is no web address", "Use https://host or NAME=https://host")
            found[key] = url.rstrip("/")
        return found

    def choice(self, name: str, default: str, allowed: tuple[str, ...]) -> str:
        """Return one of the allowed words."""
        value = self.text(name, default)
        if value in allowed:
            return value
        self._fault(name, "is not one of the allowed words", f"Use one of {', '.join(allowed)}")
        return default

    def path(self, name: str, default: Path | None = None) -> Path | None:
        """Return an absolute path, or the default where none is named."""
        value = self.text(name)
        return Path(value).expanduser().absolute() if value else default

    def database(self, name: str) -> dict[str, Any] | None:
        """Return Django's database settings from a postgres:// URL, None where there is none."""
        url = self.secret(name)
        if not url:
            return None
        if not url.startswith(("postgres://", "postgresql://")):
            self._fault(name, "is not a PostgreSQL address", "Use postgres://user:password@host:5432/name")
            return None
        try:
            return dict(environ.Env.db_url_config(url))
        except ValueError:
            self._fault(name, "cannot be parsed as an address", "Percent-encode special characters in the password")
            return None

    def broker(self, name: str) -> str:
        """Return the address of a Redis-protocol server, empty where there is none."""
        url = self.secret(name)
        if url and not url.startswith(("redis://", "rediss://", "unix://")):
            self._fault(name, "is not the address of a Redis-protocol server", "Use redis://host:6379/0")
            return ""
        return url

    def require(self, name: str, value: object, remedy: str) -> None:
        """Note a fault where a variable without a default was not given (a wrong one is already noted)."""
        if not value and not any(fault.name.startswith(name) for fault in self.faults):
            self._fault(name, "is not set", remedy)

    def _number(self, name: str, default: float, *, least: float, most: float | None, whole: bool) -> float:
        value = self.text(name)
        if not value:
            return default
        span = f"from {least} to {most}" if most is not None else f"of at least {least}"
        remedy = f"Use a {'whole ' if whole else ''}number {span}"
        try:
            number = int(value) if whole else float(value)
        except ValueError:
            self._fault(name, "is not a number", remedy)
            return default
        if not least <= number <= (most if most is not None else float("inf")):
            self._fault(name, "is out of range", remedy)
            return default
        return number

    def _fault(self, name: str, problem: str, remedy: str) -> None:
        self.faults.append(Fault(name, problem, remedy))


env = Env(os.environ)
