"""Requests of members of streams groups, step by step."""
