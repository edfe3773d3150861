"""LIST as Kubernetes answers it: pages that belong to one resourceVersion, whole or as metadata only.

Follows the server's rules where readers trip: resourceVersion=0 ignores the limit, a continue token goes stale
(410), a token and a resourceVersion exclude each other, a version from the future is refused.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from gangdash.simulator.answers import ApiError, Response
from gangdash.simulator.kinds import Kind
from gangdash.simulator.selectors import selection
from gangdash.simulator.store import Key, ObjectStore

EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list "
    "without the continue parameter, or use the continue token in this response for the rest of the list."
)


class _Token(msgspec.Struct):
    """What a continue token means to the server; opaque to everybody else. Revision -1: whatever is newest."""

    rv: int
    start: tuple[str, str]


class _MetadataOnly(msgspec.Struct):
    metadata: msgspec.Raw


@dataclass(frozen=True, slots=True)
class ListRequest:
    """One LIST after its path and headers were understood."""

    kind: Kind
    version: str
    namespace: str | None
    query: Mapping[str, str]
    metadata_only: bool = False

    def number(self, name: str) -> int:
        """Return a whole number of the query, 0 where it is not given."""
        text = self.query.get(name) or "0"
        if not text.isdecimal():
            raise ApiError(400, f"Invalid value for {name}: {text!r}")
        return int(text)


def answer_list(
    store: ObjectStore, request: ListRequest, *, ignore_limit: bool = False, page_cached: bool = False
) -> Response:
    """Return one page."""
    with store.changed:
        revision, after = _position(store, request)
        # The watch cache of older servers does not page.
        is_whole = ignore_limit or (request.query.get("resourceVersion") == "0" and not page_cached)
        limit = 0 if is_whole else request.number("limit")
        keep = selection(
            request.kind.plural, request.query.get("labelSelector", ""), request.query.get("fieldSelector", "")
        )
        shown = {"keep": keep} if keep else {}
        found, left = store.items(request.kind, request.namespace, revision, after=after, limit=limit, **shown)
    metadata: dict[str, object] = {"resourceVersion": str(revision)}
    if left:
        metadata["continue"] = _encode(_Token(revision, found[-1][0]))
        if keep is None:
            metadata["remainingItemCount"] = left
    return Response(200, _body(request, metadata, [body for _key, body in found]))


def whole(kind: Kind, version: str, body: bytes) -> bytes:
    """Return an object with its kind and apiVersion, as GET, watches and lists of custom kinds show it."""
    head = f'{{"kind":"{kind.kind}","apiVersion":"{kind.api_version(version)}",'
    return head.encode() + body[1:]


def partial(body: bytes) -> bytes:
    """Return an object's metadata alone, as the metadata form shows it."""
    metadata = msgspec.json.decode(body, type=_MetadataOnly).metadata
    return b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":' + bytes(metadata) + b"}"


def _position(store: ObjectStore, request: ListRequest) -> tuple[int, Key]:
    """Return the revision to list at and the key to go on after."""
    token = request.query.get("continue")
    wanted = request.number("resourceVersion")
    if token:
        if request.query.get("resourceVersion"):
            raise ApiError(400, "specifying resource version is not allowed when using continue")
        return _resume(store, _decode(token))
    if wanted > store.revision:
        raise ApiError(
            504,
            f"Too large resource version: {wanted}, current: {store.revision}",
            details={"causes": [{"reason": "ResourceVersionTooLarge"}], "retryAfterSeconds": 1},
        )
    match = request.query.get("resourceVersionMatch")
    if match and not request.query.get("resourceVersion"):
        raise ApiError(400, "resourceVersionMatch is forbidden unless resourceVersion is provided")
    if match != "Exact":
        return store.revision, ("", "")
    if wanted < store.compacted:
        raise ApiError(410, f"The resourceVersion for the provided list is too old: {wanted}")
    return wanted, ("", "")


def _resume(store: ObjectStore, token: _Token) -> tuple[int, Key]:
    if token.rv == -1:
        return store.revision, token.start
    if token.rv < store.compacted:
        raise expired(token.start)
    return token.rv, token.start


def expired(start: Key) -> ApiError:
    """Return the 410 of a stale token, with the token that goes on without consistency."""
    return ApiError(410, EXPIRED, continue_token=_encode(_Token(-1, start)))


def expire(token: str) -> ApiError:
    """Return the 410 for a token that is still good: what a compaction between two pages does."""
    return expired(_decode(token).start)


def _encode(token: _Token) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("=")


def _decode(text: str) -> _Token:
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=_Token)
    except (binascii.Error, ValueError, msgspec.DecodeError) as error:
        raise ApiError(400, f"continue key is not valid: {error}") from error


def _body(request: ListRequest, metadata: Mapping[str, object], bodies: list[bytes]) -> bytes:
    kind = request.kind
    if request.metadata_only:
        head = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
        items = [partial(body) for body in bodies]
    elif kind.builtin:
        head = {"kind": f"{kind.kind}List", "apiVersion": kind.api_version(request.version), "metadata": metadata}
        items = bodies
    else:
        custom = {"continue": "", **metadata}
        head = {"apiVersion": kind.api_version(request.version), "kind": f"{kind.kind}List", "metadata": custom}
        items = [whole(kind, request.version, body) for body in bodies]
    return msgspec.json.encode(head)[:-1] + b',"items":[' + b",".join(items) + b"]}"
