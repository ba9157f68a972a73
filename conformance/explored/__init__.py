"""Paths of free clients, walked through Kafka's own coordinator as well."""
