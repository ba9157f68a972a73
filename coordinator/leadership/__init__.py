"""Partition leadership: a single node leads everything; several nodes share by leases in a common store."""
