"""The long form: `python -m tests.fuzz TARGET [libFuzzer's options] CORPUS`."""

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
"""A finding ends nothing: each is written to crash-..., once for the line that raised it."""
OF_NAMES = ("printed_commands", *(f"views_{form}" for form in names.FORMS))
OF_WORDS = ("selectors", "anonymous_selectors")
_HERE = str(Path(__file__).resolve().parents[2])


def main() -> None:
    """Seeds an empty corpus, and runs."""
    name, *arguments = sys.argv[1:]
    target = targets.of(name)
    run = target.run
    if KEEP_GOING in arguments:
        arguments.remove(KEEP_GOING)
        run = _noting(run)
    for argument in arguments:
        if not argument.startswith("-") and not Path(argument).is_file():
            _seed(Path(argument), target.seeds())
    words = Path("fuzz.dict")
    words.write_text("".join(f'"{_escaped(word)}"\n' for word in sorted(_words(name))))
    given = [sys.argv[0], f"-dict={words}", *arguments]
    atheris.Setup(given, run, custom_mutator=_mutator(name))
    atheris.Fuzz()


def _words(name: str) -> set[str]:
    """Of all targets of a family."""
    family = {target.run.__name__ for target in targets.family_of(name)} or {name}
    words = set(filter(None, names.HOSTILE)) if family & {*OF_NAMES} else set()
    if family & {*OF_WORDS}:
        words |= set(map(str, expressions.TOKENS))
    return words if family <= {*OF_NAMES, *OF_WORDS} else words | set(map(str, (*hostile.WORDS, *files_keys())))


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


def _noting(run: Callable[[bytes], None]) -> Callable[[bytes], None]:
    known: set[str] = set()

    def noted(data: bytes) -> None:
        try:
            run(data)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what is looked for
            frames = traceback.extract_tb(error.__traceback__)
            lines = [frame for frame in frames if frame.filename.startswith(_HERE)]
            where = f"{type(error).__name__} {lines[-1].filename}:{lines[-1].lineno}"
            if where in known:
                return
            known.add(where)
            path = Path(f"crash-{hashlib.sha256(where.encode()).hexdigest()[:12]}")
            path.write_bytes(data)
            sys.stderr.write(f"FOUND {path}: {where}: {str(error)[:300]!r}\n")

    return noted


def _mutator(name: str) -> Callable[[bytes, int, int], bytes]:
    family = targets.family_of(name)
    head = 1 if family else 0

    def mutated(data: bytes, max_size: int, seed: int) -> bytes:
        """Half of the time libFuzzer's mutation of bytes, otherwise another value or word somewhere in the text."""
        random = Random(seed)
        result = None
        if random.random() < 0.5 and len(data) > head:
            target = family[data[0] % len(family)].run.__name__ if family else name
            if target in OF_NAMES:
                result = _with_another_name(data[head:], random)
            elif target in OF_WORDS:
                result = _with_another_word(data[head:], random)
            else:
                result = _with_another_value(data[head:], random)
        if result is not None and len(result) + head <= max_size:
            return data[:head] + result
        return bytes(atheris.Mutate(data, max_size))

    return mutated


def _with_another_value(data: bytes, random: Random) -> bytes | None:
    answers = data.split(network.BETWEEN)
    number = random.randrange(len(answers))
    before, brace, rest = answers[number].partition(b"{")
    try:
        value = json.loads(brace + rest)
    except (ValueError, RecursionError):
        return None
    answers[number] = before + json.dumps(hostile.damaged(value, random)).encode()
    return network.BETWEEN.join(answers)


def _with_another_name(data: bytes, random: Random) -> bytes:
    """Another question or story, or another word of the cluster that is spelled in a hostile way."""
    head, *pieces = (data[:2].ljust(2, b"\0"), *data[2:].split(network.BETWEEN))
    number = random.randrange(len(pieces) + 1)
    if number == len(pieces):
        head = random.randbytes(2)
    which, word = random.randbytes(2), "".join(random.sample(names.HOSTILE, random.choice((1, 1, 2)))).encode()
    kept = pieces[min(number, len(pieces) - 1)]
    changed = random.choice((which + word, which + kept[2:], kept[:2] + word, kept + word))
    pieces[number : number + random.choice((0, 1))] = [changed]
    return head + network.BETWEEN.join(pieces)


def _with_another_word(data: bytes, random: Random) -> bytes:
    """Between two of the characters that end a word."""
    ends = [0, *(index for index, byte in enumerate(data) if byte in b" .,()[]{}'\""), len(data)]
    start = random.choice(ends)
    end = start if random.random() < 0.4 else min((item for item in ends if item > start), default=start)
    words = [str(random.choice(expressions.TOKENS)) for _ in range(random.choice((0, 1, 1, 1, 2, 3)))]
    return data[:start] + "".join(words).encode(errors="replace") + data[end:]


main()
