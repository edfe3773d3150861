"""Frozen facts: what the cluster said, typed, with absence kept. No rule lives here."""
