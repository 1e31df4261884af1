"""What the rules need from storage and file systems, as protocols and plain values."""
