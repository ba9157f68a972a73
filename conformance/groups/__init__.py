"""Groups of the consumer protocol (KIP-848) on a real Kafka: each request in each state, and random sequences."""
