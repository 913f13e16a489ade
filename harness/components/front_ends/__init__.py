"""Front ends: audio to audio before recognition (dereverberation, noise reduction)."""
