"""Puts the program together: the composition root, the Thrift port beside the gateway, the sample data."""
