"""The history of one group from the lines of its coordinators: members, rebalances, and the group as a whole."""
