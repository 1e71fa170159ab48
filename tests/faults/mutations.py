"""Damaged files: a reader accepts them or raises an error that names the file, in little time.

A child process damages a file again and again and reads it. It reports each outcome by one byte. If it is
silent for too long or ends, the file that it was reading is the cause; the parent starts another child.
"""

from __future__ import annotations

import json
import os
import random
import resource
import select
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

OUTCOMES = {
    "a": "accepted",
    "r": "refused",
    "n": "refused without the name of the file",
    "f": "another exception",
    "m": "out of memory",
}
_SECONDS = 5.0
_BYTES = 1 << 30


class Format(NamedTuple):
    """A file format: a right file, and its reader."""

    path: Path
    read: Callable[[Path], Any]


class Found(NamedTuple):
    """What came of the damaged files of one format: outcomes, and the first example of each bad one."""

    counts: Counter[str]
    examples: dict[str, str]


def damaged(content: bytes, rng: random.Random) -> bytes:
    """The content with one to three damages: bits, bytes, runs, cuts, and numbers that are out of range."""
    changed = bytearray(content)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(max(1, len(changed)))
        kind = rng.randrange(7)
        if kind == 0 and changed:
            changed[at] ^= 1 << rng.randrange(8)
        elif kind == 1 and changed:
            changed[at] = rng.choice((0, 0xFF, 0x7F, ord('"'), ord("["), ord("-"), ord("9")))
        elif kind == 2:
            del changed[at : at + rng.randint(1, 64)]
        elif kind == 3:
            changed[at:at] = rng.randbytes(rng.randint(1, 16))
        elif kind == 4:
            changed[at:at] = changed[at : at + rng.randint(1, 64)]
        elif kind == 5:
            changed[at : at + 8] = rng.choice((2**63 - 1, 2**31, 10**8, 0)).to_bytes(8, "little")
        else:
            del changed[at:]
    return bytes(changed)


def damaged_json(content: bytes, rng: random.Random) -> bytes:
    """JSON with another value somewhere, or a value or a key less."""
    value = json.loads(content)
    for _ in range(rng.randint(1, 2)):
        place = value
        while True:
            keys = list(place) if isinstance(place, dict) else range(len(place))
            if not keys:
                break
            key: Any = rng.choice(list(keys))
            inner = place[key]
            if isinstance(inner, dict | list) and inner and rng.random() < 0.8:
                place = inner
                continue
            if rng.random() < 0.2:
                del place[key]
            else:
                place[key] = rng.choice(
                    (None, -1, 1e99, 10**30, "", "\ud800", [], {}, [[]], True, "../../etc")
                )
            break
    return json.dumps(value).encode("utf-8", "surrogatepass")


def outcome(found: Format, content: bytes) -> tuple[str, str]:
    """Read a file with this content: the letter of the outcome, and the error."""
    found.path.write_bytes(content)
    try:
        found.read(found.path)
    except MemoryError as error:
        return "m", str(error)
    except (ValueError, OSError) as error:
        return ("r" if found.path.name in str(error) else "n"), f"{type(error).__name__}: {error}"
    except Exception as error:
        return "f", f"{type(error).__name__}: {error}"
    return "a", ""


def damage_many(found: Format, count: int, seed: int) -> Found:
    """Read ``count`` damaged copies of a file. The seed of a copy is ``seed`` plus its number."""
    content, counts = found.path.read_bytes(), Counter[str]()
    examples: dict[str, str] = {}
    number = 0
    while number < count:
        process, reports = _child(found, content, range(seed + number, seed + count))
        try:
            while number < count:
                if not select.select([reports], [], [], _SECONDS)[0]:
                    os.kill(process, signal.SIGKILL)
                    ended = "no end after 5 s"
                    break
                line = reports.readline()
                if not line:
                    ended = "crash"
                    break
                name = OUTCOMES[line[0]]
                counts[name] += 1
                if line[0] not in "ar":
                    examples.setdefault(name, f"seed {seed + number}: {line[2:].strip()}")
                number += 1
            else:
                ended = ""
        finally:
            reports.close()
            os.waitpid(process, 0)
        if ended:
            counts[ended] += 1
            examples.setdefault(ended, f"seed {seed + number}")
            number += 1
    found.path.write_bytes(content)
    return Found(counts, examples)


def _child(found: Format, content: bytes, seeds: range) -> tuple[int, Any]:
    """Start a process that reads a damaged copy for each seed."""
    receive, send = os.pipe()
    process = os.fork()
    if process:
        os.close(send)
        return process, os.fdopen(receive, encoding="utf8", errors="replace")
    try:
        os.close(receive)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (used + _BYTES, used + _BYTES))
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        for seed in seeds:
            rng = random.Random(seed)
            is_json = found.path.suffix == ".json" and rng.random() < 0.5
            letter, error = outcome(found, (damaged_json if is_json else damaged)(content, rng))
            os.write(send, f"{letter} {' '.join(error.split())[:300]}\n".encode("utf8", "replace"))
    finally:
        os._exit(0)
