"""What transactions and leases need from storage."""
