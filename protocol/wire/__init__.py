"""Kafka's binary protocol: messages and record batches as bytes."""
