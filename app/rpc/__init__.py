"""A message in, a message out: names bound to handlers, results and exceptions put where the IDL wants them."""
