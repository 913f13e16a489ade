"""Questions about audio, and how a set of them is built. The harness reads it with `data.QuestionData`."""
