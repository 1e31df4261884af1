"""The targets of a call: a gateway over HTTPS, or the processor of this process."""
