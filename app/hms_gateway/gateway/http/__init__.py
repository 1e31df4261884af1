"""A request and its response: the one path, and the two adapters that bring requests to it."""
