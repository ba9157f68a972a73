"""Lines of the log that stand for many."""
