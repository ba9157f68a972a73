"""`rejoin groups`: kafka-consumer-groups.sh, over Kafka's own requests."""
