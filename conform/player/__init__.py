"""The player of scripts: speaks the binary protocol to any broker, and records requests, answers and actions."""
