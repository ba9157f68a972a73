"""Kafka Streams applications: instances with threads, tasks with state that has to be restored, and their records."""
