"""The same scripts on other emulators of Kafka: how many each passes."""
