"""What a consumer group is: its members and epochs, the records that make them, and how they are written."""
