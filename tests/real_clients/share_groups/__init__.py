"""confluent-kafka in share groups."""
