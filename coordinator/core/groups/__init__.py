"""Groups: requests about them, and the protocols they follow."""
