"""What Kafka's group coordinators log: one table for the writer and the parser."""
