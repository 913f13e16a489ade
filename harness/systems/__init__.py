"""How systems are written, and the systems themselves.

`system` holds them, `reading` and `spec_file` make them of short forms and files, `option_table` lists every option.
"""
