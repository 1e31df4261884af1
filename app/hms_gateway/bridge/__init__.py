"""The sidecar that lets Thrift-over-TCP clients use the gateway: Thrift messages in on loopback, HTTPS out.

`connection` turns bytes into messages without doing any I/O, `relay` posts them, `server` is the asyncio around both.
"""
