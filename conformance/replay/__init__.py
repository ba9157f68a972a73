"""Recordings replayed on the coordinator's core, compared field by field; what may differ, and why."""
