"""Metrics of clients (KIP-714), compared with a real Kafka that has a receiver for them."""
