"""The pages of a proxy, and what they are fed with."""
