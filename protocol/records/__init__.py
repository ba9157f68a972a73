"""The records of the internal logs, in the JSON that Kafka's own tools print for them."""
