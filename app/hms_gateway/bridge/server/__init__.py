"""The TCP server of the bridge: who may connect, connections, metrics, the call log."""
