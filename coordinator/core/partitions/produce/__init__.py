"""Produce: requests, what becomes of each of their partitions, and what a batch must be."""
