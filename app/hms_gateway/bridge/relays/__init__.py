"""Where a call goes from the bridge: over HTTPS to a gateway, or to the processor of this process."""
