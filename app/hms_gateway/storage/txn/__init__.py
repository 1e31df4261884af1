"""Repositories of transactions, locks, write ids, compactions and leases."""
