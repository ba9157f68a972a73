"""Requests about replicas: elections, reassignments, log directories, and the voters of the metadata quorum."""
