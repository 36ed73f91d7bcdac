"""Other people's random calls, answered by draws."""
