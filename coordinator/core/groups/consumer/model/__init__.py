"""The model of a consumer group: members and epochs, the records that make them, and how records are written."""
