"""Topics and their synthetic logs."""
