"""The parts that models are composed of.

A part declares its parameters and has a forward and a backward. The backward adds a parameter's gradient into
a named view, so that parts can share a weight.

    part.shapes() -> {name: shape}
    part.forward(params, *inputs, rng) -> outputs, cache             dropout and zoneout only if rng is given
    part.backward(doutputs, cache, grads) -> dinputs                 adds into grads[name]
"""
