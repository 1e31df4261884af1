"""The Thrift protocol on TCP: framing, SASL, messages, without I/O where possible."""
