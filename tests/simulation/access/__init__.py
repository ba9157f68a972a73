"""Scenarios with ACLs and quotas."""
