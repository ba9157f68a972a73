"""`rejoin reassign` and `rejoin elect`: kafka-reassign-partitions.sh and kafka-leader-election.sh."""
