"""The certificate that TLS shows, and making one."""
