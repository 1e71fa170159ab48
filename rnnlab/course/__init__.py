"""Teaching: what a course with notebooks needs beside the library itself."""

from rnnlab.course.use import Used, use

__all__ = ["Used", "use"]
