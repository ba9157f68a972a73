"""Known bugs of brokers and clients: their versions, the signs that they leave in logs, and their cures."""
