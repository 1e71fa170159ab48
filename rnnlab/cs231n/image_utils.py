"""The course's ``image_utils``."""

from rnnlab.data import image_from_url

__all__ = ["image_from_url"]
