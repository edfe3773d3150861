"""The Django apps: the store, the workers and the faces. One folder each, imports go one way only."""
