"""The consumer group protocol (KIP-848)."""
