"""The course's ``classifiers``."""
