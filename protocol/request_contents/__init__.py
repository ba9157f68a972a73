"""The subjects of requests: groups, topics and ids that they name, and the entries of their lists."""
