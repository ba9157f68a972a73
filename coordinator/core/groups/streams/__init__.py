"""Streams groups (KIP-1071): applications of Kafka Streams whose tasks the coordinator assigns."""
