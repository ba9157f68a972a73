"""Logs of topic partitions, from which another node, or the same one after a restart, goes on."""
