"""Requests about the cluster beside recordings of Apache Kafka."""
