"""Who may do what, and how fast: principals, ACLs and quotas that a test sets."""
