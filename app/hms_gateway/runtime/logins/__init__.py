"""What programs log in with: our own elsewhere, and those of others here."""
