"""The canonical form of a state: equal for states that differ only in names and in the clock."""
