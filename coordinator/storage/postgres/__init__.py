"""The log in PostgreSQL, for several nodes."""
