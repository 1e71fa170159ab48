"""Beam search for the most probable sentence (Chen, Dong and Li 2016, section 4.3).

    log p(w_1 .. w_T | source) = sum_t log p(w_t | w_1 .. w_{t-1}, source)             eq. 3

The beam holds the K most probable unfinished sentences. At each step, each of them is extended by each word.
The extensions that end and are among the best K are finished sentences; the best K others are the next beam.
After ``max_length`` words, every sentence of the beam ends.
"""


def beam_search(step, state, *, start, end, beam_size, max_length):
    """Find sentences for one source.

    ``step(state, word)`` returns the log-probabilities (V,) of the next word, and the state after ``word``.
    Returns (log-probability, words) of at most ``beam_size`` finished sentences, the most probable first. The
    words exclude ``start`` and ``end``. With ``beam_size`` 1 the result is that of greedy search.
    """
    beam, finished = [(0.0, [start], state)], []
    for length in range(max_length + 1):
        extended = []
        for log_prob, words, state in beam:
            log_probs, after = step(state, words[-1])
            following = range(len(log_probs)) if length < max_length else [end]
            extended += [(log_prob + log_probs[w], [*words, w], after) for w in following]
        extended.sort(key=lambda sentence: -sentence[0])
        finished += [sentence for sentence in extended[:beam_size] if sentence[1][-1] == end]
        beam = [sentence for sentence in extended if sentence[1][-1] != end][:beam_size]
        if len(finished) >= beam_size:
            break
    finished.sort(key=lambda sentence: -sentence[0])
    return [(log_prob, words[1:-1]) for log_prob, words, _ in finished[:beam_size]]
