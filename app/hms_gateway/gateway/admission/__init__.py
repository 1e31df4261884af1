"""Admission of requests: proxies, origins, shares, rates, refusals."""
