"""Heartbeats through the whole service, over HTTP and over Kafka's own protocol."""
