"""The log in a data directory, for one node."""
