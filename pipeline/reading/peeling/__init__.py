"""What is around a line of a log, taken off before any reader looks at the line."""
