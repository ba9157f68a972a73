"""A real cluster in the place of the broker that makes trouble, with a proxy in front of it."""
