"""The proxy: it stands between clients and a real Kafka, sees what they say to each other, and breaks it on command."""
