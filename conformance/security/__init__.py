"""Logins, right and wrong, as a real Kafka answers them: scripts, a player, and a recorder."""
