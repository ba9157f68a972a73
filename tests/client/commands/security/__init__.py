"""Commands about ACLs, quotas and users."""
