"""Rights at the one place that every call passes: between its arguments and its handler, and over its answer."""
