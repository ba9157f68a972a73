"""Random applications of Kafka Streams whose threads are free: they send what they like, and lie."""
