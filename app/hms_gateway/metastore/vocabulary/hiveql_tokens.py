"""HiveQL as words, names, strings and signs, each with its place in the text: what all readers of statements share."""

import contextlib
import re
from collections.abc import Iterable, Iterator
from typing import Final

from hms_gateway.metastore.vocabulary.texts import did_you_mean

_TOKEN: Final = re.compile(
    r"""\s+ | --[^\n]* | /\*.*?\*/
    | (?P<quoted>`(?:[^`]|``)*`)
    | (?P<string>'(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*")
    | (?P<word>[A-Za-z_0-9][A-Za-z_0-9]*)
    | (?P<sign><=|>=|<>|!=|.)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|[0-3][0-7]{2}|.)", re.DOTALL)
_ESCAPED: Final = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_SHOWN_CHARACTERS_MAX: Final = 80
_UNCLOSED: Final = {"'": "the string", '"': "the string", "`": "the name", "/*": "the comment"}


class CommandError(Exception):
    """The text is not a statement that is known; the message says what was expected where reading stopped.

    `position` is the place in the text, in characters from 0.
    """

    def __init__(self, text: str, position: int = 0) -> None:
        super().__init__(text)
        self.position = position


@contextlib.contextmanager
def counted_from(begin: int) -> Iterator[None]:
    """Places of errors about a part of a text, which begins there, are places of the whole text."""
    try:
        yield
    except CommandError as error:
        raise CommandError(str(error), begin + error.position) from error


class Token:
    """`upper` is the word in capitals, the sign itself, or empty for names in quotes and strings."""

    __slots__ = ("begin", "end", "is_name", "is_string", "text", "upper")

    def __init__(self, match: re.Match[str]) -> None:
        kind, raw = match.lastgroup, match.group()
        self.begin, self.end = match.span()
        self.is_string = kind == "string"
        self.is_name = kind in ("quoted", "word")
        self.text = raw
        if kind == "quoted":
            self.text = raw[1:-1].replace("``", "`")
        elif kind == "string":
            self.text = unescaped(raw[1:-1])
        self.upper = raw.upper() if kind in ("word", "sign") else ""


def unescaped(text: str) -> str:
    """What a string of HiveQL means, without its quotes."""
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def tokens_of(text: str) -> list[Token]:
    """All tokens but blanks and comments."""
    return [Token(match) for match in _TOKEN.finditer(text) if match.lastgroup is not None]


def split_statements(text: str) -> Iterator[tuple[str, int]]:
    """The statements between semicolons with their places in the text; what is blank or a comment is left out.

    An unclosed quote lasts up to the end, so the last statement may not be one yet.
    """
    begin, has_tokens = 0, False
    for token in _whole_tokens(text):
        if token.upper == ";":
            if has_tokens:
                yield text[begin : token.begin], begin
            begin, has_tokens = token.end, False
        else:
            has_tokens = True
    if has_tokens:
        yield text[begin:], begin


def is_leaving(text: str) -> bool:
    """True for a word that leaves a shell, which is no statement."""
    return text.strip().rstrip(";").strip().lower() in ("quit", "exit", "\\q")


def is_complete(text: str) -> bool:
    """Whether the text ends with the semicolon of its last statement; one without any statement is complete."""
    found = list(_whole_tokens(text))
    return not found or (found[-1].upper == ";")


def line_and_column(text: str, position: int) -> tuple[int, int]:
    """Both from 1."""
    before = text[:position]
    return before.count("\n") + 1, position - (before.rfind("\n") + 1) + 1


def pointed_at(text: str, position: int) -> str:
    """The line of the text that has `position`, and a mark below it."""
    position = min(position, len(text.rstrip()))
    number, column = line_and_column(text, position)
    lines = text.split("\n")
    line = lines[number - 1].expandtabs(1)
    begin = max(0, column - 1 - _SHOWN_CHARACTERS_MAX // 2)
    shown = line[begin : begin + _SHOWN_CHARACTERS_MAX]
    where = f"line {number}: " if len(lines) > 1 else ""
    return f"{where}{shown}\n{' ' * (len(where) + column - 1 - begin)}^"


class TokenReader:
    """A place in the tokens of a statement; reading steps over them, and says what it expected where it cannot."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(_whole_tokens(text))
        while self._tokens and self._tokens[-1].upper == ";":
            self._tokens.pop()
        self._at = 0

    def _name(self) -> str:
        token = self._next("a name")
        if not token.is_name:
            self._at -= 1
            raise self._expected("a name")
        return token.text

    def _string(self, wanted: str) -> str:
        token = self._next(wanted)
        if not token.is_string:
            self._at -= 1
            raise self._expected(wanted)
        return token.text

    def _number(self, wanted: str) -> int:
        token = self._next(wanted)
        if not token.text.isdecimal():
            self._at -= 1
            raise self._expected(wanted)
        return int(token.text)

    def _literal(self) -> str:
        """A literal, as the metastore keeps values of partitions."""
        if self._is_string():
            return self._string("a value")
        if self._peek() in ("DATE", "TIMESTAMP") and self._at + 1 < len(self._tokens):
            self._at += 1
            return self._string("a value in quotes")
        sign = "-" if self._takes("-") else ""
        token = self._next("a value")
        if not token.is_name:
            self._at -= 1
            raise self._expected("a value")
        text = sign + token.text
        return f"{text}.{self._next('digits').text}" if self._takes(".") else text

    def _next(self, wanted: str) -> Token:
        if self._at >= len(self._tokens):
            raise self._expected(wanted)
        self._at += 1
        return self._tokens[self._at - 1]

    def _peek(self, ahead: int = 0) -> str:
        place = self._at + ahead
        return self._tokens[place].upper if place < len(self._tokens) else ""

    def _is_name(self) -> bool:
        return self._at < len(self._tokens) and self._tokens[self._at].is_name

    def _is_string(self) -> bool:
        return self._at < len(self._tokens) and self._tokens[self._at].is_string

    def _is_at_end(self) -> bool:
        return self._at >= len(self._tokens)

    def _takes(self, *words: str) -> bool:
        """Step over `words` if they come next."""
        if [token.upper for token in self._tokens[self._at : self._at + len(words)]] != list(words):
            return False
        self._at += len(words)
        return True

    def _takes_any(self, *words: str) -> str:
        """Step over one of `words` if it comes next; which one, or empty."""
        word = self._peek()
        if not word or word not in words:
            return ""
        self._at += 1
        return word

    def _needs(self, *words: str) -> None:
        """Step over `words`, which have to come next."""
        for word in words:
            if not self._takes(word):
                raise self._expected(word, [word])

    def _needs_any(self, *words: str) -> str:
        found = self._takes_any(*words)
        if not found:
            raise self._expected(_alternatives(words), words)
        return found

    def _needs_end(self) -> None:
        if not self._is_at_end():
            raise self._expected("the end of the statement")

    def _finds(self, word: str, *, after: bool = True) -> bool:
        """Step to the next `word`, and `after` it."""
        for place in range(self._at, len(self._tokens)):
            if self._tokens[place].upper == word:
                self._at = place + after
                return True
        return False

    def _skip_to(self, *words: str) -> None:
        while self._at < len(self._tokens) and self._peek() not in words:
            self._at += 1
        if self._at >= len(self._tokens):
            raise self._expected(_alternatives(words))

    def _position(self) -> int:
        """Where the next token begins, or the text ends."""
        return self._tokens[self._at].begin if self._at < len(self._tokens) else len(self._text.rstrip(" \t\r\n;"))

    def _rest(self) -> str:
        """The text from here on."""
        end = self._tokens[-1].end if self._tokens else 0
        return self._text[self._position() : end]

    def _expected(self, wanted: str, words: Iterable[str] = ()) -> CommandError:
        """The error here, where one of `words` may have been meant."""
        rest = self._tokens[self._at : self._at + 4]
        if not rest:
            return CommandError(f"expected {wanted}, found the end", self._position())
        first = rest[0]
        unclosed = "/*" if self._text.startswith("/*", first.begin) else first.upper
        if unclosed in _UNCLOSED:
            what = _UNCLOSED[unclosed]
            return CommandError(f"expected {wanted}, found {what} that begins here and does not end", first.begin)
        end = first.end
        if not first.is_name:
            # A sign is shown with what is written to it, such as `\d`.
            for token in rest[1:]:
                end = token.end if token.begin == end else end
        found = self._text[first.begin : end][:_SHOWN_CHARACTERS_MAX]
        meant = did_you_mean(first.upper, words, most=1, likeness=0.75)
        # The list of all that could be here is for those who made no slip of the pen.
        expected = wanted.partition(" (")[0] if meant else wanted
        return CommandError(f"expected {expected}, found {found}{meant}", first.begin)


def _alternatives(words: tuple[str, ...]) -> str:
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _character(match: re.Match[str]) -> str:
    text = match[1]
    if len(text) == 5:
        return chr(int(text[1:], 16))
    if len(text) == 3:
        return chr(int(text, 8))
    return _ESCAPED.get(text, text)


def _whole_tokens(text: str) -> Iterator[Token]:
    """Up to a quote or comment that does not end, which is given as one token."""
    for match in _TOKEN.finditer(text):
        if match.lastgroup is None:
            continue
        yield Token(match)
        if match.group() in ("'", '"', "`") or text.startswith("/*", match.start()):
            return
