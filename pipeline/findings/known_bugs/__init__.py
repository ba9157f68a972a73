"""Known bugs of brokers and clients: which versions have them, the signs that they leave in logs, and what cures them."""
