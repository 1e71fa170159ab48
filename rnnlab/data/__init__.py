"""Files to batches.

:mod:`~rnnlab.data.vocabulary`  words and their numbers
"""
