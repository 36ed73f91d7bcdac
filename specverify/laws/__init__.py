"""Laws: programs of draws, their enumeration, sampling and error bounds, and the models and scenarios they run on."""
