"""The sticky algorithm: previous owners, what they keep, and how the rest is dealt."""
