"""Names and patterns that go wrong somewhere."""

ODD_NAMES = (
    "",
    " ",
    "a-b",
    "x.y",
    "ünï",
    "😀",
    "tab\tbed",
    "nul\0name",
    "new\nline",
    "quo'te",
    'quo"te',
    "back\\slash",
    "%",
    "1",
    "_",
)
PATTERNS = ("*", ".*", "**", "", "|", "||", "x?", "%", "(", "[ab]*", "\\", "'", ".", "..", " * ", "a|", "|a")
