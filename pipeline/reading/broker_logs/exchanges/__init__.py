"""Exchanges of a request log as a journal's events: members by heartbeats, commits, transactions, ends of logs."""
