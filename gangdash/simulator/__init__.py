"""A small living cluster behind a real Kubernetes HTTP API: for the demo, for tests, for load.

`server` and `faults` answer like an API server and break on purpose; `world` is the cluster itself.
Nothing here may import Django or the apps: readers must meet this cluster only over HTTP.
"""
