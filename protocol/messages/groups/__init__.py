"""Classic groups: joining, syncing, heartbeats, leaving; describing, listing and deleting groups."""
