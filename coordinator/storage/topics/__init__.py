"""The topics log: what topics there are, kept once for all nodes and over restarts."""
