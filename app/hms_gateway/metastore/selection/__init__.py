"""Which table and which of its partitions a call is about."""
