"""The cluster: API versions, coordinators, metadata."""
