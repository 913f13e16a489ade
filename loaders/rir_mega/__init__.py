"""The data of the benchmark `rir_mega` (Whisper-RIR-Mega, arXiv 2603.02252): the same utterance clean and in a room.

`recipe` opens speech and rooms and fixes what is built, `strata` and `plan` decide who is heard in which room,
`render` makes the two clips of a pair, `build` writes a folder, `data` reads one, `published` reads the published set,
`opening` finds either by name. What an evaluation relies on is the protocol `data.PairData`.
"""
