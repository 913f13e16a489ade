"""The Hugging Face Hub: calls that are tried again, repositories, publishing a data set."""
