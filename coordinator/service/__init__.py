"""The service around the core: event loop, HTTP, files, logging. The only place of the coordinator that knows them."""
