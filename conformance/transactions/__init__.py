"""Records producers and transactions from a real Kafka: every field of every answer, batches included."""
