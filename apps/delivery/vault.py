"""Seals the secrets of channels, so that a copy of the database opens none of them.

The key comes from the environment, in the embedded mode else from a file in the state directory that is made when
first needed. Of several keys the first seals and all of them open. Leaves out who may set a secret.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

import msgspec
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings

from gangdash.checks import is_embedded

KEY_FILE = "secrets-key"
KEY_LENGTH_MIN = 32


class VaultError(Exception):
    """Secrets cannot be sealed or opened; the text says why and holds none."""


def seal(values: Mapping[str, str]) -> str:
    """Return the values in a form that only the key opens."""
    return _vault(may_create=True).encrypt(msgspec.json.encode(values)).decode("ascii")


def unseal(sealed: str) -> dict[str, str]:
    """Return sealed values."""
    if not sealed:
        return {}
    try:
        return msgspec.json.decode(_vault(may_create=False).decrypt(sealed.encode("ascii")), type=dict[str, str])
    except (InvalidToken, UnicodeEncodeError, msgspec.DecodeError):
        raise VaultError(
            "The secrets of this channel cannot be opened with the present key; enter them again"
        ) from None


def reseal(sealed: str) -> str:
    """Return the same values sealed with the first key."""
    return seal(unseal(sealed)) if sealed else ""


def has_key() -> bool:
    """Return whether secrets can be sealed."""
    return bool(settings.GANGDASH_SECRETS_KEYS) or is_embedded()


def _vault(*, may_create: bool) -> MultiFernet:
    texts = settings.GANGDASH_SECRETS_KEYS or _key_of_file(settings.GANGDASH_STATE_DIR, may_create=may_create)
    if not texts:
        raise VaultError("There is no key for secrets; set GANGDASH_SECRETS_KEY")
    return MultiFernet([Fernet(_stretched(text)) for text in texts])


def _stretched(text: str) -> bytes:
    """Turn a long random text into a key. It has its randomness already, so that one hash is enough."""
    return base64.urlsafe_b64encode(hashlib.sha256(b"gangdash secrets\n" + text.encode()).digest())


def _key_of_file(folder: Path, *, may_create: bool) -> list[str]:
    """Return the key of the state directory; only the embedded mode has one."""
    if not is_embedded():
        return []
    path = folder / KEY_FILE
    if may_create and not path.exists():
        _write_key(path)
    try:
        return path.read_text(encoding="ascii").split()
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise VaultError("The key file of the state directory cannot be read") from error


def _write_key(path: Path) -> None:
    """Write a random key for this user only; of two who do it at once the first wins, and no one reads half of it."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(50) + "\n")
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
        draft.unlink()
    except OSError as error:
        raise VaultError("The state directory takes no key file") from error
