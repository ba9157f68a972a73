"""Scripts about batches, compaction and the transaction log, and how records are described."""
