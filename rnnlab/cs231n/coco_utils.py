"""The course's ``coco_utils``."""

from rnnlab.data import decode_captions, load_coco_data, sample_coco_minibatch

__all__ = ["decode_captions", "load_coco_data", "sample_coco_minibatch"]
