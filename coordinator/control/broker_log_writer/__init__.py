"""A broker's own logs, written from events, in the words of a chosen Kafka version."""
