"""What every change passes: leases that fence it off, events that record it."""
