"""Names of photographs, by which captions and features are joined."""

from __future__ import annotations

import unicodedata


def composed(name: str) -> str:
    """A name in composed Unicode (NFC): on a Mac an umlaut in it may be two characters."""
    return unicodedata.normalize("NFC", name)
