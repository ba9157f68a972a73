"""Transports of a client's requests: over Kafka's protocol, over HTTP, or within one process."""
