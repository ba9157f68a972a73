"""Answers of HTTP that go on for as long as the client reads."""
