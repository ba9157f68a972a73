"""Records the logs of real clients in groups, with a ledger of every action on them."""
