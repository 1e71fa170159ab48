"""Beam search of a :class:`~.toys.TableModel` over Python lists, with all options."""

from __future__ import annotations

import numpy as np

from rnnlab.decoding import Hypothesis

from .toys import END, START, TableModel, has_repeats


def listed_beam_search(
    model: TableModel,
    source: int,
    *,
    beam_size: int,
    max_length: int,
    min_length: int = 0,
    length_penalty: float = 0.0,
    normalisation: str = "power",
    n_best: int = 1,
    num_groups: int = 1,
    diversity: float = 0.0,
    no_repeat_ngram: int = 0,
) -> list[Hypothesis]:
    """The finished hypotheses of one source, without <START> as a word."""
    size, V = beam_size // num_groups, model.table.shape[-1]
    beams: list[list[tuple[float, tuple[int, ...]]]] = [[(0.0, ())] for _ in range(num_groups)]
    finished: list[list[Hypothesis]] = [[] for _ in range(num_groups)]

    def divisor(tokens: tuple[int, ...]) -> float:
        length = len(tokens) + 1
        return float((length if normalisation == "power" else (5 + length) / 6) ** length_penalty)

    def allowed(tokens: tuple[int, ...], word: int) -> bool:
        if word == END:
            return len(tokens) >= min_length
        repeats = has_repeats((*tokens, word), no_repeat_ngram)
        return word != START and len(tokens) < max_length and not repeats

    for t in range(max_length + 1):
        chosen = np.zeros(V)  # how many beams of earlier groups continue with each word
        for beam, ended in zip(beams, finished, strict=True):
            extended = []
            for total, tokens in beam:
                for word in range(V):
                    log_prob = model.table[source, t, (START, *tokens)[-1], word]
                    if allowed(tokens, word) and log_prob > -np.inf:
                        rank = total + log_prob - diversity * chosen[word]
                        extended.append((rank, total + log_prob, tokens, word))
            extended.sort(key=lambda each: -each[0])
            for _, total, tokens, word in extended[:size]:
                if word == END:
                    ended.append(Hypothesis(tokens, total, total / divisor(tokens), True))
            ended.sort(key=lambda each: -each.score)
            others = [each for each in extended if each[3] != END][:size]
            beam[:] = [(total, (*tokens, word)) for _, total, tokens, word in others]
            if len(ended) >= size:  # the search of this group ends
                beam.clear()
                continue
            np.add.at(chosen, [each[3] for each in others], 1)
            most = max((total for total, _ in beam), default=-np.inf)
            needed = min(n_best, size)
            if len(ended) >= needed and most / divisor((0,) * max_length) <= ended[needed - 1].score:
                beam.clear()  # none of its sentences can still reach a better score
    best: dict[tuple[int, ...], Hypothesis] = {}
    for each in sorted((each for ended in finished for each in ended[:size]), key=lambda each: -each.score):
        best.setdefault(each.tokens, each)
    return list(best.values())[:n_best]
