"""Passwords, tokens, Kerberos tickets, trusted proxies: who sends a request."""
