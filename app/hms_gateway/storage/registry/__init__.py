"""Repositories of the small aggregates and of kept outcomes."""
