"""Pictures: losses, gradients, images with captions, attention over images and sentences, maps of states.

Every function returns a matplotlib Figure on the Agg canvas. A notebook displays it, and :func:`save` writes
it. The functions do not use the state of pyplot, so they work in threads and without a display.
"""

from rnnlab.plots.alignments import alignment_matrix
from rnnlab.plots.curves import loss_curve, losses_per_token
from rnnlab.plots.figures import save
from rnnlab.plots.gradients import gradient_flow, gradient_statistics
from rnnlab.plots.images import attention_grid, caption_grid
from rnnlab.plots.states import SCIKIT_LEARN, state_map

__all__ = [
    "SCIKIT_LEARN",
    "alignment_matrix",
    "attention_grid",
    "caption_grid",
    "gradient_flow",
    "gradient_statistics",
    "loss_curve",
    "losses_per_token",
    "save",
    "state_map",
]
