"""What a page draws of a group's life: rows that are made of events."""
