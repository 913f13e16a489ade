"""From text and speech to a published data set."""
