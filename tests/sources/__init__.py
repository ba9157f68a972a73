"""What tests of the sources themselves need."""
