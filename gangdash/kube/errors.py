"""What can go wrong between here and an API server, one class per thing a caller would do differently.

Raised ``from`` the client's own error. ``reason`` is a short closed text that is shown and compared;
``detail`` is what the server said, cut short and never relied upon.
"""

# ruff: noqa: N818 (each is named for what it says, as the callers read it)

from __future__ import annotations

_LONGEST_DETAIL = 256


class KubeError(Exception):
    """``what`` is the kind or path that was asked for."""

    def __init__(self, what: str, reason: str, detail: str = "") -> None:
        self.what = what
        self.reason = reason
        self.detail = " ".join(detail.split())[:_LONGEST_DETAIL]
        super().__init__(": ".join(p for p in (what, reason, self.detail) if p))


class KubeconfigError(KubeError):
    """The access to a cluster cannot be set up: nothing was asked of any server."""


class Unauthorized(KubeError):
    """401: the credential itself is refused, so no other question will be answered."""


class Forbidden(KubeError):
    """403: this role may not list this kind."""


class NotInstalled(KubeError):
    """404: the kind is not served."""


class Gone(KubeError):
    """410: the list that was being paged through is too old by now."""


class Throttled(KubeError):
    """429, still, after the waits that the server asked for."""


class ServerFault(KubeError):
    """Any other answer that is not the list that was asked for."""


class Unreachable(KubeError):
    """No answer, or none that ended in time."""


_BY_STATUS: dict[int, type[KubeError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotInstalled,
    410: Gone,
    429: Throttled,
}


def of_status(what: str, status: int, detail: str) -> KubeError:
    """Return the error for an HTTP status."""
    reason = "not served" if status == 404 else str(status)
    return _BY_STATUS.get(status, ServerFault)(what, reason, detail)
