"""Transactions, write ids, locks and the compaction queue: decisions over values, and the services that apply them."""
