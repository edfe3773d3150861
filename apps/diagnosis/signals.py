"""What others may hang on to an analysis without its app knowing them."""

from __future__ import annotations

from django.dispatch import Signal

diagnosis_done = Signal()
"""The answers of one moment are in the store: ``cluster``, ``snapshot``, after the commit.

Not sent for a moment that a newer one has overtaken. A receiver that fails is logged and costs the answer nothing.
"""
