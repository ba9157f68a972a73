"""`rejoin quotas` and `rejoin users`: kafka-configs.sh for users, client ids and addresses."""
