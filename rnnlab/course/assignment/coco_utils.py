"""The data: functions that read them, draw batches, and convert captions to text."""

from rnnlab.cs231n.coco_utils import decode_captions, load_coco_data, sample_coco_minibatch

__all__ = ["decode_captions", "load_coco_data", "sample_coco_minibatch"]
