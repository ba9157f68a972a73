"""The pages of a proxy: the groups of the cluster behind it, and events concluded from what passes."""
