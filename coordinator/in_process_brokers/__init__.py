"""Several brokers in one process, without a database: a controller, shared logs, and failures on command."""
