"""Clients in other languages and Kafka's own tools against a node: ``python -m conformance.clients [CLIENT ...]``."""
