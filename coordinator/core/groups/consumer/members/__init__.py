"""Moves of a consumer group's members: subscribing, targets, reconciliation, timers, leaving."""
