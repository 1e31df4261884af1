"""What the calls about locks, transactions, write ids, leases and compactions do."""
