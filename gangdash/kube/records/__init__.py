"""Typed records of API objects, one module per API family."""
