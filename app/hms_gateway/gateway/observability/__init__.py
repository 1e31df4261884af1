"""What operators see of the gateway: metrics and the access log."""
