"""The version of gangdash and nothing else.

Importing the engine imports this package, so it must stay free of Django and of side effects.
"""

from __future__ import annotations

__version__ = "1.0.0"
