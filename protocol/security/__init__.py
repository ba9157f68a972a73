"""Values of requests about ACLs and quotas, typed: what admin clients, tests and scenarios name them by."""
