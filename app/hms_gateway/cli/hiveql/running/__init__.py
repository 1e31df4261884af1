"""What statements do: calls of a metastore, and rows made of the answers."""
