"""Errors in responses: how they are counted, which of them mean a wrong request, and the log lines of these."""
