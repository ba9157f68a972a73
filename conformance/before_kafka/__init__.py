"""``rejoin proxy`` before a real Apache Kafka: clients, moved leaders and coordinators, suites of libraries."""
