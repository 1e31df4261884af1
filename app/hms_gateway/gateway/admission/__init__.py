"""Who may send a request and how much of the gateway it may take; how a request is refused."""
