"""Understanding: audio and a question to an option, or to a text that follows instructions."""
