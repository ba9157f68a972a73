"""Logs of topic partitions: what a coordinator writes so that another node, or itself after a restart, can go on."""
