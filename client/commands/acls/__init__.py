"""`rejoin acls`: kafka-acls.sh, over Kafka's own requests."""
