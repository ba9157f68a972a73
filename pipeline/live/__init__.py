"""Following running services with Structured Streaming."""
