"""Requests about replicas, the quorum and settings of brokers, as a real Kafka answers them: scripts and a recorder."""
