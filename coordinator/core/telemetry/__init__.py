"""Metrics that clients push (KIP-714): subscriptions to them, and the instances of clients that are known."""
