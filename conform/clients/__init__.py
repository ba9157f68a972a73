"""Judging a client: troubles that a broker makes, and the requests with which a right consumer reacts."""
