"""The edge: HTTP, TLS, authentication, metrics and the access log around `rpc.Processor`."""
