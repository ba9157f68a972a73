"""Messages about who may do what."""
