"""Transactions: their coordinator, their markers, and the offsets that are a part of them."""
