"""Parts that messages and records of streams groups (KIP-1071) have in common."""
