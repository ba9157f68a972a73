"""What a run shows: timeline, summary, comparison, page, transcript."""
