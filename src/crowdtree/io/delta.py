r"""Field guides in the DELTA format: files ``specs``, ``chars`` and ``items`` in one folder.

Directives begin with ``*`` and a phrase. Multistate characters become questions with their states
as answers; characters that are text or numbers are left out. An item's attributes are ``3,1/2``
(character 3 has state 1 or 2), ``3,1-3`` (a range), ``3,V`` (variable), ``3,U`` (unknown) and
``3,-`` (not applicable). Comments are in ``<>``, marks of RTF such as ``\i{}`` are removed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.errors import CrowdtreeError, one_line
from crowdtree.core.outcomes import DASHES, MAX_ANSWERS
from crowdtree.core.reading import MB, Source, open_source, shown
from crowdtree.core.text import plural
from crowdtree.io.formats import DELTA

MAX_BYTES = 50 * MB
MULTISTATE = ("UM", "OM", "CM")
TYPES = {**dict.fromkeys(MULTISTATE, ""), "TE": "text", "IN": "number", "RN": "number"}
"""Types of characters: unordered, ordered and cyclic states, text, whole and real numbers."""
_DIRECTIVE = re.compile(r"(?:^|(?<=\s))\*(?=[A-Za-z])")
_COMMENT = re.compile(r"<[^<>]*>")
_ATTRIBUTE = re.compile(r"(\d{1,6})(?:,(\S*))?")
_SIGNS = ((re.compile(r"<(?=\s*=|\s+\d)"), "\x01"), (re.compile(r"(?<=\s)>(?=\s*[=\d])"), "\x02"))
"""Less than and greater than, which are no brackets of comments."""
MAX_NESTING = 20
HIDDEN = "\x00"
_RTF = (
    (re.compile(r"\\u(-?\d{1,6})\s?\??"), lambda found: _letter(int(found[1]))),
    (
        re.compile(r"\\'([0-9a-fA-F]{2})"),
        lambda found: bytes.fromhex(found[1]).decode("cp1252", "replace"),
    ),
    (re.compile(r"\\(?:endash|emdash)\b(?:\{\}| )?"), lambda _: "-"),
    (re.compile(r"\\(?:lquote|rquote)\b(?:\{\}| )?"), lambda _: "'"),
    (re.compile(r"\\(?:ldblquote|rdblquote)\b(?:\{\}| )?"), lambda _: '"'),
    (re.compile(r"\\(?:par|line|tab)\b(?:\{\}| )?"), lambda _: " "),
    (re.compile(r"\\[a-zA-Z]+-?\d*(?:\{\}| )?"), lambda _: ""),
    (re.compile(r"\\([\\{}])"), lambda found: found[1]),
    (re.compile(r"[{}]"), lambda _: ""),
)


class Guide(NamedTuple):
    """A field guide as the parts of a problem."""

    source: str
    classes: list[str]
    questions: list[str]
    answers: list[tuple[str, ...]]
    right: NDArray[np.bool_]  # [answer, question, class]; none for "-"
    notes: list[str]


@dataclass
class _Character:
    """A character with the names of its states by number."""

    number: int
    name: str
    comment: str
    states: dict[int, str] = field(default_factory=dict)
    kind: str = "UM"
    count: int = 2
    implicit: frozenset[int] = frozenset()


class _File:
    """A file of directives."""

    def __init__(self, source: Source) -> None:
        self.name = source.name
        data = source.read_bytes(MAX_BYTES)
        if b"\0" in data:
            raise CrowdtreeError(f"{self.name}: is not text")
        self.encoding = "utf-8-sig"
        try:
            text = data.decode(self.encoding)
        except UnicodeDecodeError:
            self.encoding = "cp1252"
            text = data.decode(self.encoding, errors="replace")
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        for pattern, sign in _SIGNS:
            text = pattern.sub(sign, text)
        self.text = text

    def directives(self) -> Iterator[tuple[int, str]]:
        """The place of each directive and its text."""
        starts = [found.end() for found in _DIRECTIVE.finditer(_hide_comments(self.text))]
        for start, end in zip(starts, [*(s - 1 for s in starts[1:]), len(self.text)], strict=True):
            yield start, self.text[start:end]

    def find(self, phrase: str) -> tuple[int, str] | None:
        """The data of a directive and their place; of several the last."""
        pattern = re.compile(r"\s+".join(phrase.split()) + r"(?![A-Za-z])", re.IGNORECASE)
        found = None
        for start, text in self.directives():
            if head := pattern.match(text):
                found = start + head.end(), text[head.end() :]
        return found

    def refuse(self, place: int, what: str) -> NoReturn:
        line = self.text.count("\n", 0, place) + 1
        raise CrowdtreeError(f"{self.name}, line {line}: {what}")


def read_delta(source: Source) -> Guide:
    """Read the guide in a folder, or beside one of its files."""
    if source.path is None:
        raise CrowdtreeError(f"{source.name}: DELTA files are read from a folder; give its path")
    folder = source.path if source.path.is_dir() else source.path.parent
    files = {path.name.lower(): path for path in sorted(folder.iterdir(), reverse=True)}
    opened = []
    for part in DELTA:
        path = files.get(part) or files.get(f"{part}.txt")
        if path is None:
            raise CrowdtreeError(
                f"{shown(folder)}: has no file {part}; a DELTA folder holds {', '.join(DELTA)}"
            )
        opened.append(_File(open_source(path)))
    specs, chars, items = opened
    characters = _characters(chars)
    _read_specs(specs, characters)
    _check_states(chars, characters)
    described = _items(items, characters, _dependencies(specs, characters))
    old = [part for part, file in zip(DELTA, opened, strict=True) if file.encoding == "cp1252"]
    notes = [f"{', '.join(old)} read as Windows-1252"] if old else []
    return _guide(shown(folder), characters, described, notes)


# ---------------------------------------------------------------- characters


def _characters(chars: _File) -> dict[int, _Character]:
    found = chars.find("CHARACTER LIST")
    if found is None:
        raise CrowdtreeError(f"{chars.name}: has no *CHARACTER LIST")
    start, text = found
    characters: dict[int, _Character] = {}
    heads = list(re.finditer(r"(?:^|(?<=\s))#\s*(\d{1,6})\.\s", _hide_comments(text)))
    if not heads:
        chars.refuse(start, "the character list is empty; expected #1. and a name")
    for place, head in enumerate(heads):
        end = heads[place + 1].start() if place + 1 < len(heads) else len(text)
        number, body = int(head[1]), text[head.end() : end]
        if number in characters:
            chars.refuse(start + head.start(), f"character {number} occurs twice")
        name, *rest = _split(body)
        character = _Character(number, _plain(name), _comments(name))
        if not character.name:
            chars.refuse(start + head.start(), f"character {number} has no name")
        for part in rest:
            state = re.match(r"\s*(\d{1,6})\.\s*(.*)", _without_comments(part), re.DOTALL)
            if state is not None:
                if int(state[1]) in character.states:
                    chars.refuse(
                        start + head.start(), f"character {number}: state {state[1]} occurs twice"
                    )
                character.states[int(state[1])] = _plain(state[2])
        characters[number] = character
    return characters


def _read_specs(specs: _File, characters: dict[int, _Character]) -> None:
    """Read types, numbers of states and implicit values of the characters."""
    if not _DIRECTIVE.search(specs.text):
        raise CrowdtreeError(f"{specs.name}: has no directive, such as *CHARACTER TYPES")
    if total := specs.find("NUMBER OF CHARACTERS"):
        word = total[1].strip()
        if _range(word) is None or "-" in word:
            specs.refuse(total[0], f"expected the number of characters, got {one_line(word)}")
        if missing := [n for n in range(1, int(word) + 1) if n not in characters][:1]:
            specs.refuse(
                total[0], f"states {word} characters, but character {missing[0]} is not in chars"
            )
    for place, character, value in _pairs(specs, "CHARACTER TYPES", characters):
        character.kind = value.upper()
        if character.kind not in TYPES:
            specs.refuse(
                place,
                f"character {character.number} has the type {one_line(value)}; expected "
                f"{', '.join(TYPES)}",
            )
    for place, character, value in _pairs(specs, "NUMBERS OF STATES", characters):
        if not re.fullmatch(r"\d{1,6}", value):
            specs.refuse(
                place,
                f"character {character.number}: expected a number of states, got {one_line(value)}",
            )
        character.count = int(value)
    for place, character, value in _pairs(specs, "IMPLICIT VALUES", characters):
        if not TYPES[character.kind]:
            first = value.partition(":")[0]
            character.implicit = _states(first, character, specs, place) or frozenset()


def _pairs(
    file: _File, phrase: str, characters: dict[int, _Character]
) -> Iterator[tuple[int, _Character, str]]:
    """Entries ``character,value`` of a directive; a range of characters has the value each."""
    start, text = file.find(phrase) or (0, "")
    for entry in re.finditer(r"\S+", _without_comments(text)):
        numbers, comma, value = entry[0].partition(",")
        wanted = _range(numbers)
        if not comma or not value or wanted is None:
            file.refuse(
                start, f"*{phrase}: expected entries such as 3,2 or 4-6,2, got {one_line(entry[0])}"
            )
        for number in wanted:
            yield start, _known(number, characters, file, start), value


def _known(number: int, characters: dict[int, _Character], file: _File, place: int) -> _Character:
    if number not in characters:
        file.refuse(place, f"character {number} is not in the character list")
    return characters[number]


def _range(text: str) -> range | None:
    """Numbers of ``4`` or ``4-6``."""
    found = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", text)
    if found is None:
        return None
    first, last = int(found[1]), int(found[2] or found[1])
    return range(min(first, last), max(first, last) + 1)


def _check_states(chars: _File, characters: dict[int, _Character]) -> None:
    for character in characters.values():
        if TYPES[character.kind]:
            continue
        absent = [n for n in range(1, character.count + 1) if n not in character.states]
        extra = [n for n in character.states if n > character.count]
        if absent or extra:
            wrong = f"has no state {absent[0]}" if absent else f"has a state {extra[0]}"
            raise CrowdtreeError(
                f"{chars.name}: character {character.number} ({one_line(character.name)}) {wrong}, "
                f"but specs states {character.count} states"
            )


class _Dependency(NamedTuple):
    """Characters that do not apply where the controlling character has only these states."""

    control: int
    states: frozenset[int]
    dependents: frozenset[int]


def _dependencies(specs: _File, characters: dict[int, _Character]) -> list[_Dependency]:
    found = []
    for phrase, applies in (
        ("DEPENDENT CHARACTERS", False),
        ("INAPPLICABLE CHARACTERS", False),
        ("APPLICABLE CHARACTERS", True),
    ):
        start, text = specs.find(phrase) or (0, "")
        for entry in _without_comments(text).split():
            head, *tail = entry.split(":")
            numbers, _, states = head.partition(",")
            wanted, ranges = _range(numbers), [_range(part) for part in tail]
            if wanted is None or not states or not ranges or None in ranges:
                specs.refuse(
                    start, f"*{phrase}: expected entries such as 4,1/2:5-7, got {one_line(entry)}"
                )
            dependents = frozenset(n for part in ranges if part for n in part)
            for number in wanted:
                control = _known(number, characters, specs, start)
                those = _states(states, control, specs, start) or frozenset()
                if applies:
                    those = frozenset(control.states) - those
                found.append(_Dependency(number, those, dependents))
    return found


# ---------------------------------------------------------------- items


Coded = dict[int, frozenset[int] | None]
"""States by character; None where it is variable, unknown or does not apply."""


def _items(
    items: _File, characters: dict[int, _Character], dependencies: Sequence[_Dependency]
) -> dict[str, Coded]:
    found = items.find("ITEM DESCRIPTIONS")
    if found is None:
        raise CrowdtreeError(f"{items.name}: has no *ITEM DESCRIPTIONS")
    start, text = found
    hidden = _hide_comments(text)
    heads = list(re.finditer(r"^[ \t]*#(?:\s*\+)?", hidden, re.MULTILINE))
    described: dict[str, Coded] = {}
    main: Coded = {}
    for place, head in enumerate(heads):
        end = heads[place + 1].start() if place + 1 < len(heads) else len(text)
        stop = re.search(r"/(?=\s|$)", hidden[head.end() : end])
        if stop is None:
            items.refuse(start + head.start(), "the name of the item does not end with /")
        after = head.end() + stop.end()
        raw = text[head.end() : head.end() + stop.start()]
        name = _unique(_plain(raw), _comments(raw), place + 1, described)
        if not name:
            items.refuse(start + head.start(), "the item has no name")
        coded = _attributes(items, start + after, text[after:end], characters)
        if "+" in head[0]:
            coded = main | coded  # a variant says only what differs
        else:
            main = dict(coded)
        described[name] = coded
    for coded in described.values():
        _fill(coded, characters, dependencies)
    return described


def _attributes(items: _File, start: int, text: str, characters: dict[int, _Character]) -> Coded:
    plain = _hide_comments(text)
    if (open_at := plain.find("<")) >= 0:
        items.refuse(start + open_at, "the comment that begins here with < has no >")
    coded: Coded = {}
    for found in re.finditer(r"\S+", plain):  # a comment belongs to the word before it
        word, place = found[0].replace(HIDDEN, ""), start + found.start()
        if not word:
            continue
        entry = _ATTRIBUTE.fullmatch(word)
        if entry is None:
            items.refuse(place, f"expected attributes such as 3,1/2, got {one_line(word)}")
        character = _known(int(entry[1]), characters, items, place)
        if TYPES[character.kind]:
            continue
        if character.number in coded:
            items.refuse(place, f"character {character.number} is coded twice")
        coded[character.number] = _states(entry[2] or "-", character, items, place)
    return coded


def _states(text: str, character: _Character, file: _File, place: int) -> frozenset[int] | None:
    """States of ``1``, ``1/2``, ``1&2`` or ``1-3``; None for V, U, - and where all are right."""
    states: set[int] = set()
    for part in re.split(r"[/&]", text):
        if part.upper() in ("V", "U"):
            return None
        if part == "-":
            continue
        found = _range(part)
        if found is None:
            file.refuse(
                place,
                f"character {character.number} has {one_line(text)}; expected states such as 1, "
                "1/2 or 1-3, or V, U, -",
            )
        if found[0] < 1 or found[-1] > character.count:
            file.refuse(
                place,
                f"character {character.number} has state {part}; it has states 1 to "
                f"{character.count}",
            )
        states |= set(found)
    return frozenset(states) if 0 < len(states) < character.count else None


def _fill(
    coded: Coded, characters: dict[int, _Character], dependencies: Sequence[_Dependency]
) -> None:
    """Give characters that are not coded their implicit values, where they apply."""
    missing = [c for n, c in characters.items() if n not in coded and c.implicit]
    for character in missing:
        coded[character.number] = character.implicit
    for control, states, dependents in dependencies:
        value = coded.get(control)
        if value and value <= states:
            coded.update((c.number, None) for c in missing if c.number in dependents)


# ---------------------------------------------------------------- the guide


def _guide(
    source: str, characters: dict[int, _Character], described: dict[str, Coded], notes: list[str]
) -> Guide:
    left_out: Counter[str] = Counter()
    kept = []
    for character in characters.values():
        reason = TYPES[character.kind] or (
            "" if 2 <= character.count <= MAX_ANSWERS else f"{character.count} states"
        )
        left_out[reason] += bool(reason)
        if not reason:
            kept.append(character)
    if not kept:
        raise CrowdtreeError(f"{source}: has no character with 2 to {MAX_ANSWERS} states")
    most = max(character.count for character in kept)
    right = np.zeros((most, len(kept), len(described)), dtype=np.bool_)
    questions: dict[str, None] = {}
    for q, character in enumerate(kept):
        twins = [c for c in kept if c.name == character.name]
        name = character.name
        if len(twins) > 1:
            name = _unique(name, character.comment, character.number, questions, twins=True)
        questions[_unique(name, "", character.number, questions)] = None
        for c, coded in enumerate(described.values()):
            right[[state - 1 for state in coded.get(character.number) or ()], q, c] = True
    gone = [f"{count} ({reason})" for reason, count in left_out.items() if reason]
    if gone:
        notes.append(f"{plural(left_out.total(), 'character')} left out: {', '.join(gone)}")
    answers = [_answer_names(character) for character in kept]
    return Guide(source, list(described), list(questions), answers, right, notes)


def _answer_names(character: _Character) -> tuple[str, ...]:
    """Names of the states that may be names of answers: not empty, not a dash, all different."""
    names: list[str] = []
    for number in range(1, character.count + 1):
        name = character.states[number].replace("|", "/")
        if not name or name.casefold() in DASHES:
            name = f"state {number}"
        if name.casefold() in (other.casefold() for other in names):
            name = f"{name} ({number})"
        names.append(name)
    return tuple(names)


def _unique(
    name: str, comment: str, number: int, taken: Container[str], *, twins: bool = False
) -> str:
    """Make a name differ from those that are taken: by its comment, else by its number."""
    if comment and (twins or name in taken):
        name = f"{name} ({comment})"
    return f"{name} ({number})" if name in taken else name


# ---------------------------------------------------------------- text


def _hide_comments(text: str) -> str:
    """Replace comments, nested ones too, by characters that mean nothing, at the same places."""
    for _ in range(MAX_NESTING):
        hidden = _COMMENT.sub(lambda found: HIDDEN * len(found[0]), text)
        if hidden == text:
            break
        text = hidden
    return text


def _without_comments(text: str) -> str:
    return _hide_comments(text).replace(HIDDEN, "")


def _comments(text: str) -> str:
    """Words of the comments of a name."""
    return _plain(" ".join(found[0][1:-1] for found in _COMMENT.finditer(text)))


def _split(text: str) -> list[str]:
    """Parts that end with a slash at the end of a word."""
    hidden = _hide_comments(text)
    parts, start = [], 0
    for end in re.finditer(r"/(?=\s|$)", hidden):
        parts.append(text[start : end.start()])
        start = end.end()
    return parts or [text]


def _plain(text: str) -> str:
    r"""Text without comments and marks of RTF.

    >>> _plain(r"\i{}Poa\i0{} <L.>  annua")
    'Poa annua'
    """
    text = _without_comments(text)
    for pattern, change in _RTF:
        text = pattern.sub(change, text)
    for (_, sign), letter in zip(_SIGNS, "<>", strict=True):
        text = text.replace(sign, letter)
    return " ".join(text.split())


def _letter(code: int) -> str:
    code %= 0x10000  # RTF has signed numbers
    return "?" if 0xD800 <= code < 0xE000 or code < 32 else chr(code)
