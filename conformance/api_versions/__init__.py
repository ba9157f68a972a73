"""APIs of a Kafka broker beside those of this one: recorded, and as a page."""
