"""Admin clients: groups, offsets, topics, ACLs, quotas and users from outside, over Kafka's own requests."""
