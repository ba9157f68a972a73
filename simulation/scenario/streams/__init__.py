"""Kafka Streams applications in scenarios: their keys, and their processes."""
