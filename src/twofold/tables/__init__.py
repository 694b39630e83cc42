"""Tables of several kinds, read and written; nothing is loaded before it is asked for."""
