"""Commands: `rejoin consume`, `groups`, `assign`, `account`."""
