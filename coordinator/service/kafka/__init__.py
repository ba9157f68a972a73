"""Kafka's binary protocol: listeners, connections, and the way of a request from its bytes to the core and back."""
