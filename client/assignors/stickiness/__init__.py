"""The sticky algorithm: who held what, who keeps what, and how the rest is dealt."""
