"""The working state of a cycle and the only way to change it: statements that can be taken back.

Holds tasks, nodes, gangs and queues as the scheduler sees them while it plans. Decides nothing: rules
read this state, actions change it through ``Statement``. Relies on ``engine.model`` alone.
"""

from gangdash.engine.statement.claims import Claims
from gangdash.engine.statement.errors import GangError, TaskErrors
from gangdash.engine.statement.job import JobState, PodSet, SubGroup, SubGroupSet
from gangdash.engine.statement.log import Checkpoint, Committed, Kind, Listener, Statement, World
from gangdash.engine.statement.node import NodeState, Placed
from gangdash.engine.statement.queue import UNLIMITED, QueueState
from gangdash.engine.statement.request import GpuRequest, RequestKind
from gangdash.engine.statement.status import ACTIVE_ALLOCATED, ACTIVE_USED, ALIVE, ALLOCATED, Status
from gangdash.engine.statement.task import DEFAULT_POD_SET, TaskState
from gangdash.engine.statement.vectors import CPU, GPU, MEMORY, PODS, Amounts, Layout, Vector

__all__ = [
    "ACTIVE_ALLOCATED",
    "ACTIVE_USED",
    "ALIVE",
    "ALLOCATED",
    "CPU",
    "DEFAULT_POD_SET",
    "GPU",
    "MEMORY",
    "PODS",
    "UNLIMITED",
    "Amounts",
    "Checkpoint",
    "Claims",
    "Committed",
    "GangError",
    "GpuRequest",
    "JobState",
    "Kind",
    "Layout",
    "Listener",
    "NodeState",
    "Placed",
    "PodSet",
    "QueueState",
    "RequestKind",
    "Statement",
    "Status",
    "SubGroup",
    "SubGroupSet",
    "TaskErrors",
    "TaskState",
    "Vector",
    "World",
]
