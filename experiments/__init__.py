"""Tables and figures of the source documents, run again: reported beside measured."""
