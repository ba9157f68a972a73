"""Work of simulated users: how long they take for records, and the outcome for each record."""
