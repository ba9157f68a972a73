"""Reading records by Fetch: from leaders, in sessions, as batches that are decoded when their records are due."""
