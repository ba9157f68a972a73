"""Batches, records and transaction logs as recordings describe them."""
