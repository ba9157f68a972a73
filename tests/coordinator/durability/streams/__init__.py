"""Streams groups over restarts and failover."""
