"""Requests over Kafka's own protocol: one connection to each node, and one more to the coordinator."""
