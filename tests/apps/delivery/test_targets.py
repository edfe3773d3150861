"""Where messages may not go: every private range in every spelling, names with several addresses, names that change."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.delivery import targets
from apps.delivery.choices import DeliveryState, StopScope
from apps.delivery.models import Delivery
from apps.delivery.services import send_due
from apps.delivery.targets import Policy, TargetError, UnresolvedError, parse, resolve
from apps.delivery.transport import Call, Way, post
from tests.apps.delivery.conftest import NOW, MakeChannel
from tests.apps.delivery.far_side import FarSide
from tests.apps.delivery.test_sending import put

STRICT = Policy()
OPEN = Policy(allows_private=True)
SOME = Policy(networks=(ipaddress.ip_network("10.20.0.0/16"), ipaddress.ip_network("fd00:20::/64")))
PRIVATE = [
    "127.0.0.1", "127.8.8.8", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254",
    "100.64.0.1", "192.0.0.8", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "240.0.0.1",
    "255.255.255.255", "::1", "fe80::1", "fc00::1", "fd00:ec2::254", "2001:db8::1", "fec0::1",
    "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:7f00:1::",
    "2002:a00:1::1", "::10.0.0.1", "100::1",
]  # fmt: skip
NEVER = ["0.0.0.0", "::", "224.0.0.1", "ff02::1", "239.1.2.3", "::ffff:224.0.0.1"]
PUBLIC = ["8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]

Names = Callable[..., None]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    """Return a way to say which addresses every name has, one list for each time it is asked for."""

    def answer(*lists: list[str]) -> None:
        rest = list(lists)

        def found(_host: str, port: int, *_args: object, **_kw: object) -> list[object]:
            addresses = rest.pop(0) if len(rest) > 1 else rest[0]
            if not addresses:
                raise socket.gaierror("no such name")
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]

        monkeypatch.setattr(targets, "socket", SimpleNamespace(getaddrinfo=found, SOCK_STREAM=socket.SOCK_STREAM))

    return answer


def literal(address: str) -> str:
    return f"https://[{address}]/x" if ":" in address else f"https://{address}/x"


@pytest.mark.parametrize("address", [*PRIVATE, *NEVER])
def test_addresses_that_are_not_public_are_refused_written_out_and_by_name(address: str, names: Names) -> None:
    with pytest.raises(TargetError, match="not public"):
        parse(literal(address), STRICT)
    names([address])
    with pytest.raises(TargetError, match="not public"):
        resolve(parse("https://hooks.test/x", STRICT), STRICT)


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_fine(address: str, names: Names) -> None:
    assert parse(literal(address), STRICT).host
    names([address])
    assert [str(found) for found in resolve(parse("https://hooks.test/x", STRICT), STRICT)]


@pytest.mark.parametrize("address", PRIVATE)
def test_the_setting_opens_private_addresses(address: str) -> None:
    assert parse(literal(address), OPEN).host


@pytest.mark.parametrize("address", NEVER)
def test_no_setting_opens_what_is_nobodys_address(address: str) -> None:
    with pytest.raises(TargetError):
        parse(literal(address), OPEN)


@pytest.mark.parametrize(
    "address, is_allowed",
    [
        ("10.20.3.4", True),
        ("10.21.3.4", False),
        ("fd00:20::5", True),
        ("fd00:21::5", False),
        ("::ffff:10.20.1.1", True),
    ],
)
def test_a_list_of_networks_opens_those(address: str, is_allowed: bool) -> None:
    if is_allowed:
        assert parse(literal(address), SOME).host
    else:
        with pytest.raises(TargetError):
            parse(literal(address), SOME)


def test_one_bad_address_of_several_refuses_the_name(names: Names) -> None:
    names(["8.8.8.8", "10.0.0.1"])
    with pytest.raises(TargetError):
        resolve(parse("https://hooks.test/", STRICT), STRICT)


def test_numbers_that_a_resolver_takes_for_addresses_are_checked_after_resolving() -> None:
    for host in ("2130706433", "0x7f000001", "0177.0.0.1", "127.1"):
        target = parse(f"https://{host}/", STRICT)
        with pytest.raises(TargetError):
            resolve(target, STRICT)


def test_plain_http_takes_a_private_address_that_is_allowed(names: Names) -> None:
    with pytest.raises(TargetError, match="https://"):
        parse("http://hooks.test/", STRICT)
    names(["8.8.8.8"])
    with pytest.raises(TargetError, match="takes https://"):
        resolve(parse("http://hooks.test/", OPEN), OPEN)
    names(["10.20.0.1"])
    assert resolve(parse("http://hooks.test/", SOME), SOME)


@pytest.mark.parametrize(
    "url",
    [
        "", "hooks.test/x", "ftp://hooks.test/", "file:///etc/passwd", "https://", "https:///x", "https://u:p@hooks.test/",
        "https://u@hooks.test/", "https://hooks.test:99999/", "https://hooks.test/a b", "https://hooks.test/\n",
        "https://h\u00f6oks.test/", "https://[::1", "https://hooks.test/" + "x" * 2000, "https://hooks.test\\@x/",
    ],
)  # fmt: skip
def test_what_is_no_plain_address_is_refused(url: str) -> None:
    with pytest.raises(TargetError):
        parse(url, OPEN)


@given(st.text(max_size=80))
def test_any_text_is_an_address_or_refused(text: str) -> None:
    for url in (text, f"https://{text}"):
        with contextlib.suppress(TargetError):
            assert parse(url, STRICT).host


def test_neither_text_nor_errors_hold_the_path(names: Names) -> None:
    target = parse("https://hooks.test/services/SECRET?key=SECRET", STRICT)
    assert "SECRET" not in repr(target)
    names(["10.0.0.1"])
    with pytest.raises(TargetError) as raised:
        resolve(target, STRICT)
    assert "SECRET" not in str(raised.value)
    assert target.path == "/services/SECRET?key=SECRET"


def test_a_name_that_changes_after_the_check_is_not_followed(side: FarSide, names: Names) -> None:
    """The connection goes to what was checked: the second answer would lead to nobody."""
    names(["127.0.0.1"], ["192.0.2.7"])
    target = parse(f"http://hooks.test:{side.port}/x", OPEN)
    assert post(Call(target, b"{}", {}, Way(OPEN))).status == 200
    assert side.requests[0].headers["host"] == f"hooks.test:{side.port}"


def test_the_next_address_is_tried_where_the_first_takes_no_connection(side: FarSide, names: Names) -> None:
    names(["::1", "127.0.0.1"])
    target = parse(f"http://hooks.test:{side.port}/x", OPEN)
    assert post(Call(target, b"{}", {}, Way(OPEN))).status == 200
    assert len(side.requests) == 1


def test_proxies_of_the_environment_are_not_followed(side: FarSide, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    target = parse(f"{side.url}/x", OPEN)
    assert post(Call(target, b"{}", {}, Way(OPEN))).status == 200


def test_a_proxy_of_the_settings_is_asked_for_the_name(side: FarSide, names: Names) -> None:
    names([])
    target = parse("http://hooks.example/x", OPEN)
    assert post(Call(target, b"{}", {}, Way(OPEN, proxy=side.url))).status == 200
    assert side.requests[0].path == "http://hooks.example/x"


@pytest.mark.parametrize("host", ["localhost", "metadata", "x.internal", "api.default.svc", "db.local", "10.0.0.1"])
def test_a_proxy_is_not_asked_for_what_is_local(side: FarSide, names: Names, host: str) -> None:
    names([])
    with pytest.raises(TargetError):
        post(Call(targets.Target("https", host, 443, "/"), b"{}", {}, Way(STRICT, proxy=side.url)))
    names(["10.0.0.1"])
    with pytest.raises(TargetError):
        post(Call(targets.Target("https", "hooks.example", 443, "/"), b"{}", {}, Way(STRICT, proxy=side.url)))
    assert not side.requests


def test_a_name_without_an_address_may_get_one_later(names: Names) -> None:
    names([])
    with pytest.raises(UnresolvedError):
        resolve(parse("https://hooks.test/", STRICT), STRICT)


@pytest.mark.django_db
def test_a_forbidden_target_stops_the_channel_and_says_what_an_operator_can_do(
    make_channel: MakeChannel, names: Names, settings: object
) -> None:
    channel = make_channel(url="https://hooks.test/x")
    settings.GANGDASH_WEBHOOK_PRIVATE_TARGETS = False  # type: ignore[attr-defined]
    names(["10.0.0.1"])
    put(channel, "a")
    send_due(now=NOW)
    row = Delivery.objects.get()
    assert (row.state, row.stop_scope) == (DeliveryState.STOPPED, StopScope.CHANNEL)
    assert "GANGDASH_WEBHOOK_ALLOWED_NETWORKS" in row.detail
