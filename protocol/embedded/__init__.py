"""Bytes inside messages whose format is a client's affair: the consumer protocol."""
