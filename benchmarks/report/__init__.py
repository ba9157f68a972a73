"""The report: its page, and how long it takes on little data."""
