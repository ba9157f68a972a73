"""The consumer as a member of its group: coordinator, heartbeats, rebalances, leaving."""
