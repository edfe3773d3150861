"""The engine: a snapshot in, the scheduler cycle and its explanations out. Pure: no clock, no I/O."""
