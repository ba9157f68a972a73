"""Fetch: reading the logs of all topics, with waiting, limits and sessions."""
