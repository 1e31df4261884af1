"""Aggregates in one file each: rows, rules and methods."""
