"""Fetch at leaders and followers (KIP-392): a script, and its recording from Kafka."""
