"""What brokers say of themselves: which versions of which APIs they know, and where they can be reached."""
