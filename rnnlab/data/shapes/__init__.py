"""``shapes``: the built-in data, rendered scenes with captions from a grammar; made, not downloaded.

scenes     what is in a picture
drawing    the picture
grammar    five sentences about it
features   what a small, fixed vision system sees in it
build      all of it on disk
"""

from rnnlab.data.shapes.build import ensure_shapes, open_shapes, shapes_directory, write_shapes

__all__ = ["ensure_shapes", "open_shapes", "shapes_directory", "write_shapes"]
