"""Images by their addresses."""

from rnnlab.cs231n.image_utils import image_from_url

__all__ = ["image_from_url"]
