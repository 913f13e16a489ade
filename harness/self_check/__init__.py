"""The self-check: before a component is scored, it must show on a few known clips and texts that it works at all.

What is certain failure (all outputs equal, none, chance over many items) stops its runs with a sentence that names the
likely cause. What is poor stands in the result. A level is `failed` only if no working model, however weak, reaches it.
"""
