"""ESCUCHA (arXiv 2607.17812): its published table of questions, and its audio from the addresses in the table."""
