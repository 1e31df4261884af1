"""Checks that arguments pass before anything is looked up, and the texts of what they raise."""
