"""Repositories of databases, tables and what belongs to them."""
