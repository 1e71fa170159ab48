"""Speed, side by side with PyTorch: ``python -m benchmarks``."""
