"""Real clients that stay in one process while the proxies in front of their broker are killed."""
