"""What transactions cost: how many a second, their markers, and reading behind those that were aborted."""
