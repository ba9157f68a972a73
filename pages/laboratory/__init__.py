"""The laboratory's page: its markup, its style and its modules, which need no build."""
