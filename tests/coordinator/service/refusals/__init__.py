"""What is counted and logged of requests that are refused."""
