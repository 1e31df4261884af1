"""Column statistics: checks, merging, aggregation."""
