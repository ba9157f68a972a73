"""Share groups (KIP-932): deliveries, windows and their sums as tables, and what to set where records come late."""
