"""The worker in the user's interpreter: the loop, its referees and its single-use cases."""
