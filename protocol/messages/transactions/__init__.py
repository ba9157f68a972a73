"""Transactions, as far as groups take part in them."""
