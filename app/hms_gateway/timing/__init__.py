"""Times of the parts of calls."""
