"""The sticky algorithm: previous owners, the partitions they keep, and the distribution of the rest."""
