"""ACLs beside a real broker: the APIs that ``conformance.security.acl_probes`` does not ask for."""
