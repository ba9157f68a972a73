"""Membership of one thread of a Kafka Streams application whose coordinator assigns tasks (KIP-1071)."""
