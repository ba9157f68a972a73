"""Scripts that are written in steps."""
