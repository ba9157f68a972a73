"""Client quotas: requests about them, and their enforcement."""
