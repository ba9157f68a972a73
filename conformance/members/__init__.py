"""Lives of a group, each played by Kafka's Java client and by ours against one real broker, request by request."""
