"""The server of the laboratory's page."""
