"""Commands: `rejoin serve`, `log`, `credentials`, `journal-schema`."""
