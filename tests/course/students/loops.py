"""Mistakes in the loops over time of all recurrent cells, each in two styles.

One style counts steps and indexes arrays, the other goes through lists of steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from . import gru, lstm_styles, rnn_styles, simplified_gru
from .mistake import Expected, Mistake, either, planted

_STEPS = {
    "rnn": rnn_styles.STEP,
    "lstm": lstm_styles.DICT + lstm_styles.DICT_BACKWARD,
    "gru": gru.DICT + gru.DICT_BACKWARD,
    "simplified_gru": simplified_gru.STEP_FORWARD + simplified_gru.STEP_BACKWARD,
}

_INDICES = """
def CELL_forward(x, h0, Wx, Wh, b):
    N, T, D = x.shape
    h, cache = np.zeros((N, T, h0.shape[1])), []
    prev_h = h0
    for t in range(T):
        next_h, step = CELL_step_forward(x[:, t], prev_h, Wx, Wh, b)
        prev_h = next_h
        h[:, t] = prev_h
        cache.append(step)
    return h, cache

def CELL_backward(dh, cache):
    N, T, H = dh.shape
    dx, dWx, dWh, db = [], 0, 0, 0
    dnext = np.zeros((N, H))
    for t in reversed(range(T)):
        dx_t, dprev, dWx_t, dWh_t, db_t = CELL_step_backward(dh[:, t] + dnext, cache[t])
        dnext = dprev
        dx.append(dx_t)
        dWx, dWh, db = dWx + dWx_t, dWh + dWh_t, db + db_t
    return np.stack(dx[::-1], axis=1), dnext, dWx, dWh, db
"""

_INDICES_OF_LSTM = """
def CELL_forward(x, h0, Wx, Wh, b):
    N, T, D = x.shape
    h, cache = np.zeros((N, T, h0.shape[1])), []
    prev_h, prev_c = h0, np.zeros(h0.shape)
    for t in range(T):
        next_h, prev_c, step = CELL_step_forward(x[:, t], prev_h, prev_c, Wx, Wh, b)
        prev_h = next_h
        h[:, t] = prev_h
        cache.append(step)
    return h, cache

def CELL_backward(dh, cache):
    N, T, H = dh.shape
    dx, dWx, dWh, db = [], 0, 0, 0
    dnext = np.zeros((N, H))
    dcell = np.zeros((N, H))
    for t in reversed(range(T)):
        dx_t, dprev, dc, dWx_t, dWh_t, db_t = CELL_step_backward(dh[:, t] + dnext, dcell, cache[t])
        dnext = dprev
        dcell = dc
        dx.append(dx_t)
        dWx, dWh, db = dWx + dWx_t, dWh + dWh_t, db + db_t
    return np.stack(dx[::-1], axis=1), dnext, dWx, dWh, db
"""

_LISTS = """
def CELL_forward(x, h0, Wx, Wh, b):
    hs, caches = [h0], []
    for x_t in x.swapaxes(0, 1):
        h, step = CELL_step_forward(x_t, hs[-1], Wx, Wh, b)
        hs.append(h)
        caches.append(step)
    return np.stack(hs[1:], axis=1), caches

def CELL_backward(dh, cache):
    dhs, dxs, weights = dh.swapaxes(0, 1), [], []
    state = np.zeros(dhs[0].shape)
    for dh_t, step in zip(dhs[::-1], cache[::-1]):
        state = state + dh_t
        dx_t, dprev_h, *found = CELL_step_backward(state, step)
        state = dprev_h
        dxs.insert(0, dx_t)
        weights.append(found)
    dWx, dWh, db = (sum(each) for each in zip(*weights))
    return np.swapaxes(dxs, 0, 1), state, dWx, dWh, db
"""

_LISTS_OF_LSTM = """
def CELL_forward(x, h0, Wx, Wh, b):
    hs, c, caches = [h0], np.zeros_like(h0), []
    for x_t in x.swapaxes(0, 1):
        h, c, step = CELL_step_forward(x_t, hs[-1], c, Wx, Wh, b)
        hs.append(h)
        caches.append(step)
    return np.stack(hs[1:], axis=1), caches

def CELL_backward(dh, cache):
    dhs, dxs, weights = dh.swapaxes(0, 1), [], []
    state, cell = np.zeros((2, *dhs[0].shape))
    for dh_t, step in zip(dhs[::-1], cache[::-1]):
        state = state + dh_t
        dx_t, dprev_h, dprev_c, *found = CELL_step_backward(state, cell, step)
        state = dprev_h
        cell = dprev_c
        dxs.insert(0, dx_t)
        weights.append(found)
    dWx, dWh, db = (sum(each) for each in zip(*weights))
    return np.swapaxes(dxs, 0, 1), state, dWx, dWh, db
"""

_ADDED = "added to|accumulated"
_RESHAPED = "reshaped|reshape"

# By name: right passages with what a student writes instead, what a diagnosis says, and the kind.
Planted = Mapping[str, tuple[Mapping[str, str], Expected, str]]
_IN_INDICES: Planted = {
    "dh_of_next_step": (
        {"(dh[:, t] +": "((dh[:, t + 1] if t + 1 < T else 0) +"},
        either("dh", "t + 1|step after"),
        "wrong step",
    ),
    "dprev_h_added": ({"dnext = dprev\n": "dnext += dprev\n"}, either("dprev_h", _ADDED), "through time"),
    "caches_in_order": ({", cache[t])": ", cache[T - 1 - t])"}, either("caches", "order"), "through time"),
    "one_cache": ({", cache[t])": ", cache[0])"}, either("cache", "first"), "wrong step"),
    "forward_in_reversed_order": (
        {"    for t in range(T):\n": "    for t in range(T)[::-1]:\n"},
        either("backward in time|reversed order|reversed", "loop|order"),
        "wrong step",
    ),
    "dx_reshaped": (
        {"np.stack(dx[::-1], axis=1)": "np.array(dx[::-1]).reshape(N, T, -1)"},
        either("dx", _RESHAPED),
        "transposed",
    ),
    "h_stored_early": (
        {
            "        prev_h = next_h\n        h[:, t] = prev_h\n": (
                "        h[:, t] = prev_h\n        prev_h = next_h\n"
            )
        },
        either("h", "before"),
        "wrong step",
    ),
}
_IN_LISTS: Planted = {
    "dh_of_next_step": (
        {"zip(dhs[::-1],": "zip(np.roll(dhs[::-1], 1, axis=0),"},
        either("dh", "t + 1|step after"),
        "wrong step",
    ),
    "dprev_h_added": ({"state = dprev_h\n": "state += dprev_h\n"}, either("dprev_h", _ADDED), "through time"),
    "caches_in_order": ({"cache[::-1]": "list(cache)"}, either("caches", "order"), "through time"),
    "dh_and_dx_in_order": (
        {"zip(dhs[::-1],": "zip(dhs,", "dxs.insert(0, dx_t)": "dxs.append(dx_t)"},
        either("dh and dx", "forward|order"),
        "through time",
    ),
    "dh_reshaped": (
        {"dh.swapaxes(0, 1)": "dh.reshape(dh.shape[1], dh.shape[0], -1)"},
        either("dh", _RESHAPED),
        "transposed",
    ),
    "h_reshaped": (
        {"np.stack(hs[1:], axis=1)": "np.concatenate(hs[1:]).reshape(len(x), len(caches), -1)"},
        either("h", _RESHAPED),
        "transposed",
    ),
    "h_stored_early": ({"hs[1:]": "hs[:-1]"}, either("h", "before"), "wrong step"),
}
_STARTS = either("dc|dc_t|dprev_c", "starts|start|zeros")
_IN_INDICES_OF_LSTM: Planted = _IN_INDICES | {
    "states_exchanged": (
        {"next_h, prev_c, step =": "prev_c, next_h, step ="},
        either("next_h and next_c|prev_h and prev_c", "exchanged"),
        "order of results",
    ),
    "gradients_exchanged": (
        {"dx_t, dprev, dc,": "dx_t, dc, dprev,"},
        either("dprev_h and dprev_c", "exchanged"),
        "order of results",
    ),
    "dprev_c_added": ({"dcell = dc\n": "dcell += dc\n"}, either("dprev_c", _ADDED), "through time"),
    "dc_starts_at_dh": ({"dcell = np.zeros((N, H))": "dcell = dh[:, -1].copy()"}, _STARTS, "through time"),
}
_IN_LISTS_OF_LSTM: Planted = _IN_LISTS | {
    "both_added": (
        {"state = dprev_h\n": "state = state + dprev_h\n", "cell = dprev_c\n": "cell = cell + dprev_c\n"},
        either("dprev_h and dprev_c", _ADDED),
        "through time",
    ),
    "dc_starts_at_dh": (
        {"state, cell = np.zeros((2, *dhs[0].shape))": "state, cell = np.zeros(dhs[0].shape), dhs[-1]"},
        _STARTS,
        "through time",
    ),
}


def _mistakes() -> Iterator[Mistake]:
    for cell, steps in _STEPS.items():
        styles = {"indices": (_INDICES, _IN_INDICES), "lists": (_LISTS, _IN_LISTS)}
        if cell == "lstm":
            styles = {
                "indices": (_INDICES_OF_LSTM, _IN_INDICES_OF_LSTM),
                "lists": (_LISTS_OF_LSTM, _IN_LISTS_OF_LSTM),
            }
        for style, (source, mistakes) in styles.items():
            source = steps + source.replace("CELL", cell)
            for name, (changes, expected, kind) in mistakes.items():
                yield planted(f"{cell}_{name}_in_{style}", cell, source, changes, expected, kind)


MISTAKES = [*_mistakes()]
