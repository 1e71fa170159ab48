"""Attention to a memory, and to a decoder's own past states."""
