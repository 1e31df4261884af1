"""Backups of the whole database, the same for every kind: written in a folder, restored from it."""
