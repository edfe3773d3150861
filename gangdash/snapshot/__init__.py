"""From records to the one immutable snapshot that the engine reads, and to and from files."""
