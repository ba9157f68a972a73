"""Brokers: the API versions that each release knows, and where brokers can be reached."""
