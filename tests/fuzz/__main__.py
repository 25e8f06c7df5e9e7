"""The long form of the fuzz runs: `python -m tests.fuzz TARGET [libFuzzer's options] CORPUS`."""

from __future__ import annotations

import hashlib
import json
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random

import atheris

with atheris.instrument_imports(include=["kschedx"]):
    from tests.fuzz import targets

from tests.fuzz import expressions, hostile, names, network

KEEP_GOING = "--keep-going"
"""Continue after a finding: each is written to crash-..., once for each line that raised it."""
NAME_TARGETS = ("printed_commands", *(f"views_{form}" for form in names.FORMS))
WORD_TARGETS = ("selectors", "anonymous_selectors")
_HERE = str(Path(__file__).resolve().parents[2])


def main() -> None:
    """Fill an empty corpus with seeds, and run."""
    name, *arguments = sys.argv[1:]
    target = targets.target_of(name)
    run = target.run
    if KEEP_GOING in arguments:
        arguments.remove(KEEP_GOING)
        run = _recording(run)
    for argument in arguments:
        if not argument.startswith("-") and not Path(argument).is_file():
            _seed(Path(argument), target.seeds())
    words = Path("fuzz.dict")
    words.write_text("".join(f'"{_escaped(word)}"\n' for word in sorted(_words(name))))
    arguments_of_fuzzer = [sys.argv[0], f"-dict={words}", *arguments]
    atheris.Setup(arguments_of_fuzzer, run, custom_mutator=_mutator(name))
    atheris.Fuzz()


def _words(name: str) -> set[str]:
    """Return the dictionary words of all targets of a family."""
    family = {target.run.__name__ for target in targets.family_of(name)} or {name}
    words = set(filter(None, names.HOSTILE)) if family & {*NAME_TARGETS} else set()
    if family & {*WORD_TARGETS}:
        words |= set(map(str, expressions.TOKENS))
    return words if family <= {*NAME_TARGETS, *WORD_TARGETS} else words | set(map(str, (*hostile.WORDS, *files_keys())))


def files_keys() -> Iterable[str]:
    return {key for story in hostile.stories() for _, key in hostile.places(story) if isinstance(key, str)}


def _escaped(word: str) -> str:
    return "".join(chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\x{byte:02x}" for byte in word.encode())


def _seed(corpus: Path, seeds: Iterable[bytes]) -> None:
    corpus.mkdir(parents=True, exist_ok=True)
    if any(corpus.iterdir()):
        return
    for number, seed in enumerate(seeds):
        (corpus / f"{number:04}").write_bytes(seed)


def _recording(run: Callable[[bytes], None]) -> Callable[[bytes], None]:
    known_locations: set[str] = set()

    def record(data: bytes) -> None:
        try:
            run(data)
        except Exception as error:  # noqa: BLE001 - any exception is a finding
            frames = traceback.extract_tb(error.__traceback__)
            lines = [frame for frame in frames if frame.filename.startswith(_HERE)]
            location = f"{type(error).__name__} {lines[-1].filename}:{lines[-1].lineno}"
            if location in known_locations:
                return
            known_locations.add(location)
            path = Path(f"crash-{hashlib.sha256(location.encode()).hexdigest()[:12]}")
            path.write_bytes(data)
            sys.stderr.write(f"FOUND {path}: {location}: {str(error)[:300]!r}\n")

    return record


def _mutator(name: str) -> Callable[[bytes, int, int], bytes]:
    family = targets.family_of(name)
    head = 1 if family else 0

    def mutate(data: bytes, max_size: int, seed: int) -> bytes:
        """Mutate bytes by libFuzzer half of the time; otherwise replace a value or word of the text."""
        random = Random(seed)
        result = None
        if random.random() < 0.5 and len(data) > head:
            target = family[data[0] % len(family)].run.__name__ if family else name
            if target in NAME_TARGETS:
                result = _with_another_name(data[head:], random)
            elif target in WORD_TARGETS:
                result = _with_another_word(data[head:], random)
            else:
                result = _with_another_value(data[head:], random)
        if result is not None and len(result) + head <= max_size:
            return data[:head] + result
        return bytes(atheris.Mutate(data, max_size))

    return mutate


def _with_another_value(data: bytes, random: Random) -> bytes | None:
    answers = data.split(network.SEPARATOR)
    number = random.randrange(len(answers))
    before, brace, rest = answers[number].partition(b"{")
    try:
        value = json.loads(brace + rest)
    except (ValueError, RecursionError):
        return None
    answers[number] = before + json.dumps(hostile.damage(value, random)).encode()
    return network.SEPARATOR.join(answers)


def _with_another_name(data: bytes, random: Random) -> bytes:
    """Return the input with another question, story, or hostile spelling of a word."""
    head, *pieces = (data[:2].ljust(2, b"\0"), *data[2:].split(network.SEPARATOR))
    number = random.randrange(len(pieces) + 1)
    if number == len(pieces):
        head = random.randbytes(2)
    which_word, word = random.randbytes(2), "".join(random.sample(names.HOSTILE, random.choice((1, 1, 2)))).encode()
    piece = pieces[min(number, len(pieces) - 1)]
    new_piece = random.choice((which_word + word, which_word + piece[2:], piece[:2] + word, piece + word))
    pieces[number : number + random.choice((0, 1))] = [new_piece]
    return head + network.SEPARATOR.join(pieces)


def _with_another_word(data: bytes, random: Random) -> bytes:
    """Return the input with words inserted or replaced between characters that end a word."""
    ends = [0, *(index for index, byte in enumerate(data) if byte in b" .,()[]{}'\""), len(data)]
    start = random.choice(ends)
    end = start if random.random() < 0.4 else min((item for item in ends if item > start), default=start)
    words = [str(random.choice(expressions.TOKENS)) for _ in range(random.choice((0, 1, 1, 1, 2, 3)))]
    return data[:start] + "".join(words).encode(errors="replace") + data[end:]


main()
