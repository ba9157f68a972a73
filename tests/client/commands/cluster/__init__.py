"""Commands about leaders and replicas of a cluster."""
