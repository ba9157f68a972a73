"""Errors in responses: how they are counted, which of them say that a request was wrong, and what the log says then."""
