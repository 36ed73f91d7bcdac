"""Intercept the random calls of the code under test ("foreign code").

During interception, the library does not choose the outcome of a random call: an object ``draws`` does. For example, an
enumeration runs the code again and again, until every outcome has been chosen.
"""
