"""Commands: `rejoin report`, `why`, `watch`, `sweep`, `mcp`."""
