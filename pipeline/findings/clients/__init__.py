"""What is known of client libraries: who a member is, what each library can do, and how it calls its settings."""
