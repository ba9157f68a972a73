"""What requests are about: the groups, topics and ids that one names, and the entries of its lists."""
