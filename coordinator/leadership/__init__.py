"""Who leads what: one node everything, or several nodes by leases in a store that all of them reach."""
