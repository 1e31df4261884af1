"""Who may do what: the policy as values, and the one function that decides."""
