"""`rejoin streams`: kafka-streams-groups.sh, over Kafka's own requests."""
