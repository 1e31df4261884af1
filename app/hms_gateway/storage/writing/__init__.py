"""Units of work: the store, its snapshots, and the writers that commit."""
