"""Where the time of calls goes."""
