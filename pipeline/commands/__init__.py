"""Commands: `rejoin report`, `sweep`, `watch`."""
