"""The same producer, as Kafka's Java client has it and as ours is, against one real broker, request by request."""
