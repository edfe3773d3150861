"""The rules: one concern each, each mirroring one part of the scheduler over the working state."""
