"""Commands: `rejoin consume`, `produce`, `topics`, `groups`, `assign`, `account`."""
