"""What Kafka's binary protocol costs."""
