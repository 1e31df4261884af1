"""What programs of ours log in with elsewhere."""
