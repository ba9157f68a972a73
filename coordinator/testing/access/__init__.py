"""Principals, ACLs and quotas of a test: those of its start, and the methods that change them."""
