"""What an API server answers: a response, and the Status object that every refusal carries.

Codes, reasons and the shape of the body are those of Kubernetes; texts are only for people.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

JSON_TYPE = "application/json"


@dataclass(frozen=True, slots=True)
class Response:
    """One whole answer; streams are not responses."""

    status: int
    body: bytes
    content_type: str = JSON_TYPE
    headers: Mapping[str, str] = field(default_factory=dict)


REASONS: Mapping[int, str] = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class ApiError(Exception):
    """Raised inside the server where a request cannot be answered; becomes a Status."""

    def __init__(
        self,
        code: int,
        message: str,
        *,
        continue_token: str | None = None,
        details: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.continue_token = continue_token
        self.details = details or {}
        self.headers = headers or {}

    def status(self) -> dict[str, Any]:
        """Return the Status object, which watches carry inside an ERROR event."""
        metadata = {"continue": self.continue_token} if self.continue_token else {}
        body: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": metadata, "status": "Failure"}
        body |= {"message": self.message, "reason": REASONS.get(self.code, "Unknown"), "code": self.code}
        return body | ({"details": dict(self.details)} if self.details else {})

    def response(self) -> Response:
        """Return the refusal as an HTTP answer."""
        return Response(self.code, msgspec.json.encode(self.status()), headers=self.headers)


def not_found_page() -> Response:
    """Return what a server says of a path it does not serve: plain text, no Status."""
    return Response(404, b"404 page not found\n", "text/plain; charset=utf-8")


def json_response(value: object, headers: Mapping[str, str] | None = None) -> Response:
    """Return a value as a good JSON answer."""
    return Response(200, msgspec.json.encode(value), headers=headers or {})
