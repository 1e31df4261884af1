"""Messages, from bytes to a method's result: the IDL, its structs, the codecs, and names bound to handlers."""
