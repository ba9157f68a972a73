"""Events, defined once, and the journal that keeps them on disk."""
