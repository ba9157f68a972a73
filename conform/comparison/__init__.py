"""Compares answers with recorded ones: which fields differ, and of what kind each difference is."""
