"""The states a pod passes through in a cycle, and the sets of them that rules count by.

Mirrors pkg/scheduler/api/pod_status (KAI d5bc503a). ``ALLOCATED`` and ``PIPELINED`` exist inside a
session only; every other state is read from the API.
"""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    """One bit each, so that a set of states is an int and a test is one ``&``."""

    PENDING = 1
    GATED = 2
    ALLOCATED = 4
    PIPELINED = 8
    BINDING = 16
    BOUND = 32
    RUNNING = 64
    RELEASING = 128
    SUCCEEDED = 256
    FAILED = 512
    UNKNOWN = 1024
    STUCK_IN_RELEASING = 4096


ACTIVE_ALLOCATED = int(Status.ALLOCATED | Status.PIPELINED | Status.BINDING | Status.BOUND | Status.RUNNING)
"""Holds a node and is meant to keep it: what a gang's minimum counts."""
ACTIVE_USED = int(ACTIVE_ALLOCATED | Status.RELEASING | Status.STUCK_IN_RELEASING)
"""Holds resources of a node, terminating pods included."""
ALIVE = int(ACTIVE_ALLOCATED | Status.PENDING | Status.GATED)
ALLOCATED = int(Status.ALLOCATED | Status.BOUND | Status.BINDING | Status.RUNNING)
"""Counts as the use of its queue when the cycle begins."""
