"""How a client's requests travel: over Kafka's protocol, over HTTP, or within one process."""
