"""Commands: `rejoin serve` and `rejoin log`."""
