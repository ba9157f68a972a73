"""Share groups over restarts, failover and kill -9."""
