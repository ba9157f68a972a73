"""`rejoin share-groups`: kafka-share-groups.sh, over Kafka's own requests."""
