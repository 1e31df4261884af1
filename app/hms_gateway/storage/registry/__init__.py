"""Outcomes of calls that may be repeated, and the gateways that share a database."""
