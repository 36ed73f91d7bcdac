"""What samples of a black box decide, one file a question; all may be asked again after every batch.

``law`` against a law that is known, ``reference`` against another sampler, ``independence`` of rows and of calls.
"""
