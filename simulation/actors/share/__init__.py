"""Consumers of share groups (KIP-932), and what nodes must know for them."""
