"""Logs of consumers: their lines become statements, statements the consumers' events, and those the group's."""
