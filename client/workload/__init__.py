"""What simulated users do with records: how long they take, and what became of each record."""
