"""Delegation tokens as logins at the doors of the gateway."""
