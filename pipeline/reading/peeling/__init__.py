"""Removes wrappers around the lines of a log before any reader looks at a line."""
