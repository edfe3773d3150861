"""System checks: configuration that is well-formed but cannot work, or would be unsafe, each with a remedy.

gangdash.E stops the start, gangdash.W is said and lived with. Reads files that settings name, never the network.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from django.conf import settings
from django.core.checks import CheckMessage, Error, register
from django.core.checks import Warning as CheckWarning

# WAL keeps its index in shared memory, which file systems of several machines do not give.
NETWORK_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "fuse.sshfs"}
)
MOUNTS = Path("/proc/self/mounts")
SECRET_KEY_LENGTH = 50
KUBECONFIG_MAX_BYTES = 1024**2


def is_embedded() -> bool:
    """Tell whether the database is a file of this machine."""
    return str(settings.DATABASES["default"].get("ENGINE", "")).endswith("sqlite3")


def file_system(path: Path, mounts: str) -> str:
    """Return the file system type of the longest mount point above the path, empty where none is listed."""
    best, kind = "", ""
    for line in mounts.splitlines():
        _device, mount, fs_type, *_rest = [*line.split(" "), "", "", ""]
        mount = mount.replace("\\040", " ")
        if path.is_relative_to(mount or "\0") and len(mount) >= len(best):
            best, kind = mount, fs_type
    return kind


@register("gangdash")
def check_state_directory(**_options: Any) -> list[CheckMessage]:
    """Check the place of database, queue and key; only the embedded mode has one."""
    folder: Path = settings.GANGDASH_STATE_DIR
    if not is_embedded() or not folder.exists():
        return []
    return list(_state_faults(folder))


def _state_faults(folder: Path) -> Iterator[CheckMessage]:
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        yield Error(
            f"The state directory {folder} is not a folder that can be written to.",
            hint="Set GANGDASH_STATE_DIR or --state-dir to one that can.",
            id="gangdash.E001",
        )
        return
    kind = file_system(folder.resolve(), MOUNTS.read_text(encoding="utf-8")) if MOUNTS.exists() else ""
    if kind in NETWORK_FILE_SYSTEMS:
        yield Error(
            f"The state directory {folder} is on a network file system ({kind}), where SQLite can lose data.",
            hint="Set GANGDASH_STATE_DIR to a local disk, or use PostgreSQL.",
            id="gangdash.E002",
        )
    if folder.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        yield Error(
            f"Other users may write to the state directory {folder}; who can write there can run tasks.",
            hint=f"Run chmod 700 {folder}.",
            id="gangdash.E003",
        )


@register("gangdash")
def check_clusters(**_options: Any) -> list[CheckMessage]:
    """Check the kubeconfig and the clusters folder that settings name."""
    return [*_kubeconfig_faults(settings.GANGDASH_KUBECONFIG, settings.GANGDASH_KUBE_CONTEXT), *_folder_faults()]


def _kubeconfig_faults(path: Path | None, context: str) -> Iterator[CheckMessage]:
    if path is None:
        if context:
            yield CheckWarning(
                "GANGDASH_KUBE_CONTEXT is set and no kubeconfig is named.",
                hint="Set GANGDASH_KUBECONFIG, or unset the context.",
                id="gangdash.W001",
            )
        return
    problem = kubeconfig_problem(path, context)
    if problem:
        yield Error(
            f"The kubeconfig {path} cannot be used: {problem}.",
            hint="Set GANGDASH_KUBECONFIG or --kubeconfig to a file that kubectl can use.",
            id="gangdash.E004",
        )


def _folder_faults() -> Iterator[CheckMessage]:
    folder: Path | None = settings.GANGDASH_CLUSTERS_DIR
    if folder is not None and not (folder.is_dir() and os.access(folder, os.R_OK | os.X_OK)):
        yield Error(
            f"The clusters folder {folder} is not a folder that can be read.",
            hint="Set GANGDASH_CLUSTERS_DIR to a folder of kubeconfig files.",
            id="gangdash.E005",
        )


def kubeconfig_problem(path: Path, context: str) -> str:
    """Return what keeps a kubeconfig from naming one server, empty where nothing does. Never quotes its content."""
    try:
        if path.stat().st_size > KUBECONFIG_MAX_BYTES:
            return "it is too large for a kubeconfig"
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        return f"it cannot be read ({error.strerror})"
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError):
        return "it is not YAML"
    if not isinstance(content, dict):
        return "it is not a kubeconfig"
    wanted = context or content.get("current-context")
    if not wanted:
        return "it names no current context; choose one with --context"
    chosen = _named(content.get("contexts"), wanted, "context")
    if chosen is None:
        return f"it has no context {wanted!r}"
    cluster = _named(content.get("clusters"), chosen.get("cluster"), "cluster")
    if cluster is None or not isinstance(cluster.get("server"), str):
        return f"context {wanted!r} names no cluster with a server"
    return ""


def _named(entries: object, name: object, key: str) -> dict[str, Any] | None:
    """Return the body of the entry with this name from one of a kubeconfig's lists."""
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and entry.get("name") == name and isinstance(entry.get(key), dict):
            return dict(entry[key])
    return None


@register("gangdash")
def check_production(**_options: Any) -> list[CheckMessage]:
    """Check what would be unsafe on a network."""
    return [] if is_embedded() else list(_production_faults())


def _production_faults() -> Iterator[CheckMessage]:
    if len(settings.SECRET_KEY) < SECRET_KEY_LENGTH or len(set(settings.SECRET_KEY)) < 5:
        yield Error(
            "GANGDASH_SECRET_KEY is too short or too regular to protect sessions.",
            hint=f"Set it to {SECRET_KEY_LENGTH} or more random characters.",
            id="gangdash.E006",
        )
    if settings.DEBUG:
        yield Error("DEBUG is on, which shows settings to visitors.", hint="Switch it off.", id="gangdash.E007")
    if settings.GANGDASH_BASE_URL.startswith("http://"):
        yield CheckWarning(
            "GANGDASH_BASE_URL is plain http: passwords and tokens cross the network unencrypted.",
            hint="Put a proxy with TLS in front and set GANGDASH_BASE_URL to its https address.",
            id="gangdash.W002",
        )
