"""One POST to a checked address: no redirects, no environment proxies, bounded time and answer.

Tells failures apart by what they mean for a repeat: whether the message may have arrived. No text of an error ever
holds the path of an address, which is a secret. Leaves out what an answer means.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import requests
from requests.adapters import HTTPAdapter

from apps.delivery.targets import Address, Policy, Target, check_name, resolve

CONNECT_SECONDS = 3.0
READ_SECONDS = 8.0
TOTAL_SECONDS = 12.0
"""An answer that drips is given up after this."""
ANSWER_MAX = 128 * 1024
ADDRESSES_TRIED = 2
NEVER_STOOD = frozenset({"NewConnectionError", "NameResolutionError", "ProxyError", "InvalidURL"})
"""Errors below the library's own that are met before a byte of the message is sent."""


class TransportError(Exception):
    """No answer came. ``may_have_arrived`` where the message had been handed over before it broke."""

    def __init__(self, detail: str, *, may_have_arrived: bool = False) -> None:
        super().__init__(detail)
        self.detail = detail
        self.may_have_arrived = may_have_arrived


class CertificateError(TransportError):
    """The far side could not prove who it is, or does not speak TLS."""


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Way:
    """How messages leave: which addresses are allowed, and through which proxy if through one."""

    policy: Policy
    proxy: str = ""
    ca_file: str = ""
    """A bundle of further authorities, empty for the usual ones."""


@dataclass(frozen=True, slots=True)
class Call:
    """One thing to send and where."""

    target: Target
    body: bytes
    headers: Mapping[str, str]
    way: Way


class _PinnedAdapter(HTTPAdapter):
    """Connects to an address and still speaks TLS to the name it belongs to."""

    def __init__(self, host: str) -> None:
        self._host = host
        super().__init__(max_retries=0)

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, server_hostname=self._host, assert_hostname=self._host, **kwargs)


def post(call: Call) -> Reply:
    """Send a body and return the answer, whatever its status."""
    if call.way.proxy:
        check_name(call.target, call.way.policy)
        return _post_through(call)
    fault: TransportError | None = None
    for address in resolve(call.target, call.way.policy)[:ADDRESSES_TRIED]:
        try:
            return _post_to(call, address)
        except TransportError as error:
            # Only a message that cannot have arrived may be tried on the next address of the same name.
            if error.may_have_arrived or isinstance(error, CertificateError):
                raise
            fault = error
    assert fault is not None
    raise fault


def _post_to(call: Call, address: Address) -> Reply:
    target = call.target
    literal = f"[{address}]" if address.version == 6 else str(address)
    with requests.Session() as session:
        if not target.is_plain:
            session.mount("https://", _PinnedAdapter(target.host))
        return _exchange(session, f"{target.scheme}://{literal}:{target.port}{target.path}", call)


def _post_through(call: Call) -> Reply:
    target = call.target
    with requests.Session() as session:
        session.proxies = {"http": call.way.proxy, "https": call.way.proxy}
        return _exchange(session, f"{target.scheme}://{target.host_header}{target.path}", call)


def _exchange(session: requests.Session, url: str, call: Call) -> Reply:
    """Speak once; errors of the library end here, as their texts hold the whole address."""
    session.trust_env = False
    host = call.target.host
    deadline = time.monotonic() + TOTAL_SECONDS
    try:
        response = session.post(
            url,
            data=call.body,
            headers={**call.headers, "Host": call.target.host_header, "Accept-Encoding": "identity"},
            timeout=(CONNECT_SECONDS, READ_SECONDS),
            allow_redirects=False,
            verify=call.way.ca_file or True,
            stream=True,
        )
        with response:
            return Reply(response.status_code, response.headers, _answer(response, deadline))
    except requests.exceptions.SSLError:
        raise CertificateError(f"{host} could not prove who it is (TLS)") from None
    except requests.exceptions.ConnectTimeout:
        raise TransportError(f"{host} did not take the connection in {CONNECT_SECONDS:.0f} s") from None
    except requests.exceptions.Timeout:
        raise TransportError(f"{host} did not answer in time", may_have_arrived=True) from None
    except requests.exceptions.RequestException as error:
        raise _broken(host, error) from None
    except OSError:
        # All that is left of these is the file of authorities, which the library looks for with each request.
        raise TransportError("GANGDASH_WEBHOOK_CA_FILE cannot be read") from None


def _answer(response: requests.Response, deadline: float) -> bytes:
    """Read the answer up to its cap. Byte by byte, for a longer read would wait for all of what it asked for."""
    found = bytearray()
    for byte in response.iter_content(1):
        found += byte
        if time.monotonic() > deadline:
            raise requests.exceptions.ReadTimeout
        if len(found) >= ANSWER_MAX:
            break
    return bytes(found)


def _broken(host: str, error: requests.exceptions.RequestException) -> TransportError:
    """Tell a connection that never stood from one that broke."""
    if _cause_names(error) & NEVER_STOOD:
        return TransportError(f"{host} refuses the connection")
    return TransportError(f"{host} broke the connection off", may_have_arrived=True)


def _cause_names(error: BaseException) -> set[str]:
    """Return the names of all errors that led to this one."""
    found: set[str] = set()
    queue: list[object] = [error]
    while queue:
        item = queue.pop()
        if isinstance(item, BaseException) and type(item).__name__ not in found:
            found.add(type(item).__name__)
            queue += [item.__cause__, item.__context__, getattr(item, "reason", None), *item.args]
    return found
