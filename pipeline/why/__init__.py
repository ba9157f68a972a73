"""Why one group rebalances, in ten lines: from a report's folder, a running coordinator or a Kafka cluster."""
