"""The requests about transactions, one file for each kind."""
