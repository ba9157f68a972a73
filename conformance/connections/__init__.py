"""Limits of connections: a script, and its recording from Kafka."""
