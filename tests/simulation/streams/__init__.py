"""Kafka Streams applications on the virtual clock."""
