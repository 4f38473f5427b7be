"""The door to language models: a client here, litellm in a child process."""
