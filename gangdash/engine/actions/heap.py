"""A binary heap that orders by a comparison which may change while elements wait.

The scheduler's queues are such heaps: an element whose rank moved stays where it is until somebody fixes
it. Which element is on top then depends on the exact sift order, so this follows Go's container/heap step
by step, the bounded variant of pkg/scheduler/scheduler_util/priority_queue.go included (KAI d5bc503a).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Heap(Generic[T]):
    """``limit``: after a push beyond it the last element of the heap, not the worst one, is dropped."""

    def __init__(self, before: Callable[[T, T], bool], limit: int | None = None) -> None:
        self._before = before
        self._limit = limit
        self._items: list[T] = []

    def __len__(self) -> int:
        return len(self._items)

    def peek(self) -> T:
        return self._items[0]

    def push(self, item: T) -> None:
        self._items.append(item)
        self._up(len(self._items) - 1)
        if self._limit is not None and len(self._items) > self._limit:
            self._items.pop()

    def pop(self) -> T:
        items, last = self._items, len(self._items) - 1
        items[0], items[last] = items[last], items[0]
        self._down(last)
        return items.pop()

    def fix_top(self) -> None:
        """Let the top element sink if it no longer belongs there."""
        self._down(len(self._items))

    def _up(self, index: int) -> None:
        items = self._items
        while index > 0:
            parent = (index - 1) // 2
            if not self._before(items[index], items[parent]):
                break
            items[index], items[parent] = items[parent], items[index]
            index = parent

    def _down(self, size: int) -> None:
        items, index = self._items, 0
        while (child := 2 * index + 1) < size:
            right = child + 1
            if right < size and self._before(items[right], items[child]):
                child = right
            if not self._before(items[child], items[index]):
                break
            items[index], items[child] = items[child], items[index]
            index = child
