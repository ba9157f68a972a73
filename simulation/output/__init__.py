"""Outputs of a run: timeline, summary, comparison, page, transcript."""
