"""Topologies beside the topics of the cluster: how many tasks there are, and which topics are missing."""
