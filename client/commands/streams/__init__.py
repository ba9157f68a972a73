"""Commands about applications of Kafka Streams."""
