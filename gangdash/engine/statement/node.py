"""The working state of one node: what it can give, what is idle, used and being released.

``releasing`` may be negative where tasks were promised more than terminating pods give back, and
``idle`` where more is bound than the node offers: both are kept as the scheduler keeps them.
Mirrors pkg/scheduler/api/node_info/node_info.go (KAI d5bc503a). Vectors and ``shared`` are replaced,
never changed, so ``save`` and ``restore`` are exact and cheap.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import NamedTuple

from gangdash.engine.model.node import Node
from gangdash.engine.statement.request import GpuRequest, RequestKind, whole
from gangdash.engine.statement.sharing import SharedGpus, portion_of
from gangdash.engine.statement.status import ACTIVE_USED, Status
from gangdash.engine.statement.task import Gift, TaskState
from gangdash.engine.statement.vectors import GPU, Layout, Vector, added, fits, subtracted

UNKNOWN_GPU_MEMORY = 100
"""MiB per GPU that the scheduler assumes where the label is missing."""

_stamps = itertools.count(1)


class Placed(NamedTuple):
    """A task as its node sees it: the task itself may have moved on since."""

    task: TaskState
    status: Status
    charge: Vector
    """What was taken from the node's vectors for it."""
    groups: tuple[str, ...]
    """Shared GPU groups it uses; empty unless it holds shared GPUs."""
    memory: int
    """MiB per shared GPU group."""
    devices: tuple[str, ...]
    """Claimed GPU devices that it was counted for."""
    accepted: Vector


class NodeMemo(NamedTuple):
    """The changeable fields of a node, and its view of one pod, at one moment."""

    idle: Vector
    used: Vector
    releasing: Vector
    shared: SharedGpus
    device_users: dict[str, int]
    stamp: int
    state: int
    state_stamp: int
    key: str
    placed: Placed | None


class NodeState:
    """A node of the shard in the cycle."""

    __slots__ = (
        "_absent",
        "allocatable",
        "device_users",
        "gpu_count",
        "gpu_memory",
        "has_claimed_gpus",
        "has_gpu_memory",
        "idle",
        "index",
        "is_cpu_only",
        "is_mig",
        "layout",
        "mig_strategy",
        "name",
        "node",
        "not_ready",
        "placed",
        "releasing",
        "shared",
        "stamp",
        "state",
        "state_stamp",
        "template",
        "unbacked",
        "used",
        "watchers",
    )

    def __init__(self, node: Node, index: int, allocatable: Vector, layout: Layout) -> None:
        self.node = node
        self.name = node.name
        self.index = index
        """Position among the shard's nodes by name."""
        self.layout = layout
        self.allocatable = allocatable
        self._absent = tuple(slot for slot, amount in enumerate(allocatable) if amount == 0)
        """Slots of which the node has nothing: nobody is charged for them here."""
        self.idle: Vector = list(allocatable)
        self.used: Vector = layout.zeros()
        self.releasing: Vector = layout.zeros()
        self.shared = SharedGpus()
        self.device_users: dict[str, int] = {}
        """How many tasks are counted for each claimed GPU device."""
        self.placed: dict[str, Placed] = {}
        """By pod key. A task that moved away is still here, as releasing."""
        self.stamp = next(_stamps)
        """Changes with every change and comes back with every undo: equal stamps mean an equal state."""
        self.state = 0
        """Number of the state that ``state_stamp`` had: nodes of one number differ in name alone."""
        self.state_stamp = 0
        self.watchers: list[set[NodeState]] = []
        """Sets that want to hold every node changed since they were last emptied."""
        self.gpu_memory = UNKNOWN_GPU_MEMORY
        """MiB per GPU."""
        self.has_gpu_memory = False
        self.gpu_count = int(allocatable[GPU])
        """GPUs by the node's own label, else allocatable."""
        self.has_claimed_gpus = False
        self.is_mig = False
        self.mig_strategy = ""
        """``mixed``, ``single`` or empty."""
        self.is_cpu_only = False
        self.not_ready: tuple[str, ...] = ()
        """Why the node takes no pod at all (cordon, conditions), in the scheduler's words."""
        self.unbacked: tuple[int, ...] = ()
        """Slots with nothing allocatable here that claimed devices stand behind."""
        self.template = 0
        """Nodes with the same number have equal labels, taints, state and capacity."""

    # What a task would need here

    def memory_need(self, gpu: GpuRequest) -> int:
        """Return MiB per shared GPU group for a request."""
        return gpu.memory if gpu.memory > 0 else int(gpu.portion * self.gpu_memory)

    def portion_need(self, gpu: GpuRequest) -> float:
        return portion_of(gpu.memory, self.gpu_memory) if gpu.memory > 0 else gpu.portion

    def _has_valid_portion(self, gpu: GpuRequest) -> bool:
        portion = self.portion_need(gpu)
        return portion <= 1 or portion == int(portion)

    def fits_idle(self, task: TaskState) -> bool:
        """Whether the task could be bound here now, as far as resources go."""
        return self._fits(task, self.idle)

    def fits_future(self, task: TaskState) -> bool:
        """Whether the task fits once everything that is being released has gone."""
        return self._fits(task, added(self.idle, self.releasing))

    def fits_vector(self, task: TaskState, supply: Vector) -> bool:
        """Compare in every slot, the portion rule included; what insufficient-resource reasons go by."""
        if task.kind is not RequestKind.REGULAR and not self._has_valid_portion(task.gpu):
            return False
        discount = self.counted_devices(task)
        if discount:
            supply = list(supply)
            supply[GPU] += discount
        return fits(task.request, supply)

    def _fits(self, task: TaskState, supply: Vector) -> bool:
        if not task.asks_shared_gpu:
            return self.fits_vector(task, supply)
        request, skipped = task.request, self.unbacked
        for slot, need in enumerate(request):
            if slot != GPU and need > supply[slot] and slot not in skipped:
                return False
        if not self._has_valid_portion(task.gpu):
            return False
        wanted = task.gpu.count
        whole_gpus = math.floor(supply[GPU])
        return whole_gpus >= wanted or whole_gpus + self._matching_groups(task, wanted) >= wanted

    def _matching_groups(self, task: TaskState, at_most: int) -> int:
        need, found = self.memory_need(task.gpu), 0
        for group in self.shared.used:
            if self.shared.takes(group, need, self.gpu_memory):
                found += 1
                if found >= at_most:
                    break
        return found

    def counted_devices(self, task: TaskState) -> int:
        """Return how many devices of the task's claims are already counted here for other pods."""
        if not self.device_users:
            return 0
        return sum(1 for device in claimed_gpu_devices(task) if self.device_users.get(device, 0) > 0)

    # Changes

    def save(self, key: str) -> NodeMemo:
        return NodeMemo(
            self.idle,
            self.used,
            self.releasing,
            self.shared,
            self.device_users,
            self.stamp,
            self.state,
            self.state_stamp,
            key,
            self.placed.get(key),
        )

    def restore(self, memo: NodeMemo) -> None:
        self.idle = memo.idle
        self.used = memo.used
        self.releasing = memo.releasing
        self.shared = memo.shared
        self.device_users = memo.device_users
        self.stamp = memo.stamp
        self.state = memo.state
        self.state_stamp = memo.state_stamp
        for watcher in self.watchers:
            watcher.add(self)
        if memo.placed is None:
            self.placed.pop(memo.key, None)
        else:
            self.placed[memo.key] = memo.placed

    def accept(self, task: TaskState) -> None:
        """Write down what the task gets here: whole GPUs, a share of one, or MIG instances."""
        if not task.status & ACTIVE_USED:
            return
        is_shared = task.is_shared = task.asks_shared_gpu
        if is_shared:
            gpu = task.gpu
            share = GpuRequest(count=gpu.count, portion=self.portion_need(gpu), memory=self.memory_need(gpu))
            gift = self._gift(task, share)
        else:
            known = task.whole_gift
            if known is None or known.asked is not task.request:
                known = task.whole_gift = self._gift(task, _whole_devices(task))
            gift = known
        _, task.accepted_gpu, task.accepted, task.accepted_amounts = gift

    def _gift(self, task: TaskState, accepted: GpuRequest) -> Gift:
        vector = list(task.request)
        vector[GPU] = accepted.gpus + accepted.claimed_count
        for name, count in accepted.mig.items():
            vector[self.layout.index[name]] = count
        return Gift(task.request, accepted, vector, self.layout.amounts(vector))

    def add(self, task: TaskState) -> None:
        """Put the task here in its present status."""
        self.accept(task)
        charge = list(task.accepted)
        if task.is_shared or task.is_reservation:
            charge[GPU] = 0
        devices = claimed_gpu_devices(task) if charge[GPU] > 0 else ()
        if devices:
            self._count_devices(devices, charge)
        for slot in self._absent:
            charge[slot] = 0
        groups = task.gpu_groups if task.is_shared else ()
        memory = self.memory_need(task.gpu) if groups else 0
        placed = Placed(task, task.status, charge, groups, memory, devices, task.accepted)
        self.placed[task.key] = placed
        self._changed()
        self.used = added(self.used, charge)
        if task.status is Status.RELEASING:
            self.releasing = added(self.releasing, charge)
            self.idle = subtracted(self.idle, charge)
        elif task.status is Status.PIPELINED:
            self.releasing = subtracted(self.releasing, charge)
        else:
            self.idle = subtracted(self.idle, charge)
        if groups:
            self.shared = self.shared.copy()
            for group in groups:
                self._share(placed, group)

    def remove(self, key: str) -> None:
        """Take a task off, undoing what its stored copy was charged."""
        placed = self.placed.pop(key)
        charge = placed.charge
        if placed.devices:
            charge = self._uncount_devices(placed)
        self._changed()
        self.used = subtracted(self.used, charge)
        if placed.status is Status.RELEASING:
            self.releasing = subtracted(self.releasing, charge)
            self.idle = added(self.idle, charge)
        elif placed.status is Status.PIPELINED:
            self.releasing = added(self.releasing, charge)
        else:
            self.idle = added(self.idle, charge)
        if placed.groups:
            self.shared = self.shared.copy()
            for group in placed.groups:
                self._unshare(placed, group)

    def update(self, task: TaskState) -> None:
        """Take over the status of a task that is here, as removing and adding it would.

        A task that begins or ceases to be released, and shares nothing, moves between two vectors only.
        """
        before = self.placed[task.key]
        self.accept(task)
        is_plain = task.accepted is before.accepted and not before.groups and not before.devices
        if not is_plain or not _may_release(before.status, task.status):
            self.remove(task.key)
            self.add(task)
            return
        self.placed[task.key] = before._replace(status=task.status)
        self._changed()
        change = added if task.status is Status.RELEASING else subtracted
        self.releasing = change(self.releasing, before.charge)

    def forget(self, key: str) -> None:
        """Drop the node's view of a task without giving anything back.

        The scheduler does this when a shared task is promised another GPU of the node it is being
        evicted from: the releasing part stays charged.
        """
        self.placed.pop(key, None)
        self._changed()

    def _changed(self) -> None:
        self.stamp = next(_stamps)
        for watcher in self.watchers:
            watcher.add(self)

    # Claimed devices: a device that several pods share through one claim counts once

    def _count_devices(self, devices: tuple[str, ...], charge: Vector) -> None:
        users = dict(self.device_users)
        counted = 0
        for device in devices:
            counted += users.get(device, 0) > 0
            users[device] = users.get(device, 0) + 1
        self.device_users = users
        charge[GPU] -= min(counted, charge[GPU])

    def _uncount_devices(self, placed: Placed) -> Vector:
        users, charge = dict(self.device_users), list(placed.accepted)
        still_used = 0
        for device in placed.devices:
            count = users.get(device, 0)
            still_used += count > 1
            if count > 1:
                users[device] = count - 1
            else:
                users.pop(device, None)
        self.device_users = users
        charge[GPU] -= min(still_used, charge[GPU])
        for slot in self._absent:
            charge[slot] = 0
        return charge

    # Shared GPUs: the whole GPU leaves idle with its first user and returns with its last

    def _used_gpus(self) -> int:
        return int(self.used[GPU]) + self.shared.used_count()

    def _take_idle_gpu(self) -> None:
        if self.gpu_count < int(self.idle[GPU]) + self._used_gpus():
            self.idle = _with_gpus(self.idle, -1)

    def _give_idle_gpu(self) -> None:
        if self.gpu_count >= int(self.idle[GPU]) + self._used_gpus():
            self.idle = _with_gpus(self.idle, 1)

    def _mark_releasing(self, group: str) -> None:
        if group not in self.shared.marked:
            self.releasing = _with_gpus(self.releasing, 1)
            self.shared.marked.add(group)

    def _unmark_releasing(self, group: str) -> None:
        if group in self.shared.marked:
            self.releasing = _with_gpus(self.releasing, -1)
            self.shared.marked.discard(group)

    def _share(self, placed: Placed, group: str) -> None:
        shared, memory = self.shared, placed.memory
        used = shared.used[group] = shared.used.get(group, 0) + memory
        if placed.status is Status.PIPELINED:
            releasing = shared.releasing[group] = shared.releasing.get(group, 0) - memory
            if used - memory == releasing + memory:
                self.releasing = _with_gpus(self.releasing, -1)
            return
        shared.allocated[group] = shared.allocated.get(group, 0) + memory
        if placed.status is Status.RELEASING:
            releasing = shared.releasing[group] = shared.releasing.get(group, 0) + memory
            if used == releasing:
                self._mark_releasing(group)
                self._take_idle_gpu()
            return
        if used <= memory:
            self._take_idle_gpu()
        self._unmark_releasing(group)

    def _unshare(self, placed: Placed, group: str) -> None:
        shared, memory = self.shared, placed.memory
        used = shared.used[group] = shared.used.get(group, 0) - memory
        if placed.status is Status.PIPELINED:
            releasing = shared.releasing[group] = shared.releasing.get(group, 0) + memory
            if used + memory == releasing - memory or (used == 0 and releasing == 0):
                self.releasing = _with_gpus(self.releasing, 1)
            return
        shared.allocated[group] = shared.allocated.get(group, 0) - memory
        if placed.status is Status.RELEASING:
            shared.releasing[group] = shared.releasing.get(group, 0) - memory
            if used <= 0:
                self._give_idle_gpu()
                self._unmark_releasing(group)
            return
        if used <= 0:
            self._give_idle_gpu()
        if shared.is_releasing(group):
            self._mark_releasing(group)

    def __repr__(self) -> str:
        return f"<node {self.name} idle {self.idle} releasing {self.releasing}>"


def _may_release(before: Status, after: Status) -> bool:
    """Whether one of the two is releasing and the other holds idle resources."""
    return (before is Status.RELEASING) is not (after is Status.RELEASING) and Status.PIPELINED not in (before, after)


def _whole_devices(task: TaskState) -> GpuRequest:
    gpu = task.gpu
    if task.kind is RequestKind.MIG:
        return GpuRequest(mig=gpu.mig)
    return replace(whole(gpu.gpus), claimed=gpu.claimed) if gpu.claimed else whole(gpu.gpus)


def claimed_gpu_devices(task: TaskState) -> tuple[str, ...]:
    """Return the GPU devices (``driver/pool/device``) of the claims that the task holds or was promised."""
    return task.claims.gpu_devices if task.claims is not None else ()


def _with_gpus(vector: Vector, change: int) -> Vector:
    changed = list(vector)
    changed[GPU] += change
    return changed
