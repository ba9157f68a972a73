"""APIs of Kafka and of this broker."""
