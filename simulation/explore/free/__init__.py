"""Free clients: members of a world that may send any request of a small alphabet, at any time."""
