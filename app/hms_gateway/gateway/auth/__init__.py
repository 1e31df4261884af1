"""Passwords, Kerberos tickets, trusted proxies: who sends a request."""
