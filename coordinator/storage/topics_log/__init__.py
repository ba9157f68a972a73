"""The topics log: the topics of the cluster, shared by all nodes and kept across restarts."""
