"""Roles and privileges."""
