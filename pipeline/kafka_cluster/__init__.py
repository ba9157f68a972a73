"""A running Kafka cluster, polled over its protocol: groups, members, assignments and offsets, snapshot by snapshot."""
