"""Which rows are near each other, and what follows from that alone.

`distances` of rows in units that lose no digits, `nearest` finds the rows next to a row, `graphs`
link rows to their neighbours and join loose parts, `embeddings` read coordinates off neighbours.
Everything here is below the models: they say what the neighbours are for.
"""
