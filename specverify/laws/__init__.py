"""Laws: programs of draws, how they are enumerated, divided and bounded, and the models and situations for it."""
