"""The scheduler's session: one shard's state for one cycle, with the places where rules plug in.

``open`` builds it from a snapshot; the rules hang themselves into its hooks; actions work on it through
statements. Re-exports the state types, so that rules and actions need one import.
"""

from gangdash.engine.session.build import build_session
from gangdash.engine.session.core import Session
from gangdash.engine.session.hooks import Hooks, NodeScorer
from gangdash.engine.statement import *  # noqa: F403
from gangdash.engine.statement import __all__ as _state

__all__ = ["Hooks", "NodeScorer", "Session", "build_session", *_state]  # noqa: PLE0604
