"""What others may hang on to a poll without the collector knowing them."""

from __future__ import annotations

from django.dispatch import Signal

reading_done = Signal()
"""A complete reading is in the store: ``cluster``, ``snapshot``, ``as_of``, ``is_unchanged``, ``reading_id``, after the
commit. A worker may die between the two: a receiver that spares work remembers the reading it has done.

A receiver that fails is logged and costs the poll nothing.
"""
