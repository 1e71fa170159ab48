"""Results of runs for people: text, tables and pictures. One file for each kind of result."""
