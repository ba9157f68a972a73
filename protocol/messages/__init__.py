"""One module per API: its request, its response, and what each version changed."""
