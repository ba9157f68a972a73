"""Every event of the coordinator, the consumers and the simulation."""
