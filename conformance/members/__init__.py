"""The same life of a group, played by Kafka's Java client and by ours against one real broker, request by request."""
