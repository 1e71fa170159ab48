"""Results of runs as text, tables and pictures. Each kind of result has its own file."""
