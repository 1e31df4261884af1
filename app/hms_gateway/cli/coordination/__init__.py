"""Commands about locks and leases."""
