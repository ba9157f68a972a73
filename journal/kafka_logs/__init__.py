"""Log lines of Kafka's group coordinators: one table for the writer and the parser."""
