"""The course's ``layers``, those of them that recurrent networks need."""

from rnnlab.layers import affine_backward, affine_forward, relu_backward, relu_forward, softmax_loss

__all__ = ["affine_backward", "affine_forward", "relu_backward", "relu_forward", "softmax_loss"]
