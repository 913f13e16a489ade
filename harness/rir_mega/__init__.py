"""The evaluation of the benchmark `rir_mega`: recognizers on the same utterances clean and in a room.

`arms` presents the data as what can be heard, `recognizers` are what is judged, `evaluate` does the whole, `scoring`
makes the scores, `results` is what is written and read.
"""
