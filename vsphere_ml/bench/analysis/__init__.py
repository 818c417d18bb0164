"""What records show, taken together: points, comparisons, causes.

Pure, so that an old record is read again by a newer rule.
"""
