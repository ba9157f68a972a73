"""Several brokers in one process, without a database: a controller, shared logs, and what a test can do to a broker."""
