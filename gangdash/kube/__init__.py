"""The only part that talks to Kubernetes, and the only one that knows the shape of its objects."""
