"""Reads and changes of partitions."""
