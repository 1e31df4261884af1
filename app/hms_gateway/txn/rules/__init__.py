"""Decisions about locks, transactions, write ids, leases and compactions over plain values."""
