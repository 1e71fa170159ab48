"""The course's ``layers``, as far as recurrent networks need them."""

from rnnlab.layers import affine_backward, affine_forward, relu_backward, relu_forward, softmax_loss

__all__ = ["affine_backward", "affine_forward", "relu_backward", "relu_forward", "softmax_loss"]
