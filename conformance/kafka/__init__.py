"""A real Kafka on this machine, and what scripts do to it besides step_request."""
