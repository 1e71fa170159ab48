"""``shapes``: the built-in data, rendered scenes with captions from a grammar.

scenes     the objects of a picture and their relation
drawing    the picture
grammar    five sentences about a scene
features   image features from a fixed extractor
build      the files
"""

from rnnlab.data.shapes.build import ensure_shapes, open_shapes, shapes_directory, write_shapes

__all__ = ["ensure_shapes", "open_shapes", "shapes_directory", "write_shapes"]
