"""Repositories of partitions."""
