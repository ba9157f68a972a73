"""The recordings that come with the package: a folder for each release of Kafka, and in it a file for each set."""
