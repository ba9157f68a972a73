"""Kafka's Java producer and ours against one real broker, request by request."""
