"""Clients of scripts, and the brokers that scripts move, stop and start."""
