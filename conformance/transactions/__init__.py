"""Scripts about producers and transactions: every field of every answer is recorded, batches included."""
