"""How a consumer's requests reach a coordinator: over HTTP, or within one process."""
