"""Intercept the random calls of the code under test ("foreign code").

During interception, an object named ``draws`` chooses the outcome of each random call, in place of the library. For
example, an enumeration runs the code again and again, until every outcome has been chosen.
"""
