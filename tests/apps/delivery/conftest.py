"""Channels that lead to a server of this machine, a key for secrets, and a clock that stands still."""

from __future__ import annotations

import datetime as dt
import ipaddress
import ssl
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from django.core.cache import cache
from pytest_django import Settings

from apps.accounts.models import User
from apps.delivery import claims
from apps.delivery.channels import ChannelValues, channel_create
from apps.delivery.choices import ChannelKind
from apps.delivery.models import Channel
from tests.apps.delivery.far_side import FarSide, far_side

NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
SECRET = "T0SECRET-B0SECRET-xyzzy"
TOKEN = "xoxb-1-secret-token"
SIGNING_KEY = "signing-key-of-the-test-0123456789"


@pytest.fixture(autouse=True)
def _message_settings(settings: Settings, tmp_path: Path) -> None:
    settings.GANGDASH_SECRETS_KEYS = ["test-key-0123456789abcdefghijklmnopqrstuv"]
    settings.GANGDASH_WEBHOOK_PRIVATE_TARGETS = True
    settings.GANGDASH_BASE_URL = "https://gangdash.example"
    settings.GANGDASH_STATE_DIR = tmp_path
    cache.clear()
    claims._seen.clear()


@pytest.fixture
def side() -> Iterator[FarSide]:
    with far_side() as found:
        yield found


MakeChannel = Callable[..., Channel]


@pytest.fixture
def make_channel(alice: User, side: FarSide) -> MakeChannel:
    """Return a way to add a channel that leads to the server of this machine."""

    def make(kind: ChannelKind = ChannelKind.SLACK_WEBHOOK, *, name: str = "ops", **values: object) -> Channel:
        defaults: dict[str, object] = {
            ChannelKind.SLACK_WEBHOOK: {"url": f"{side.url}/services/{SECRET}"},
            ChannelKind.SLACK_BOT: {"url": f"{side.url}/api", "token": TOKEN, "slack_channel": "C012345"},
            ChannelKind.WEBHOOK: {"url": f"{side.url}/hook/{SECRET}", "signing_key": SIGNING_KEY},
            ChannelKind.EMAIL: {"recipients": ("ops@example.com",)},
        }[kind]  # type: ignore[assignment]
        filled = ChannelValues(name=name, **{**defaults, **values})  # type: ignore[arg-type]
        return channel_create(kind=kind, values=filled, actor=alice).channel

    return make


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a self-signed certificate for hooks.test with its key; returned is the file of both."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "hooks.test")])
    names = x509.SubjectAlternativeName([x509.DNSName("hooks.test"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(dt.datetime(2020, 1, 1, tzinfo=UTC))
        .not_valid_after(dt.datetime(2040, 1, 1, tzinfo=UTC))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    form = serialization.Encoding.PEM
    secret = key.private_bytes(form, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path = tmp_path_factory.mktemp("tls") / "hooks.pem"
    path.write_bytes(made.public_bytes(form) + secret)
    return path


@pytest.fixture
def tls_side(certificate: Path) -> Iterator[FarSide]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with far_side(context=context) as found:
        found.host = "hooks.test"
        yield found
