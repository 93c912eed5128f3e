"""Loads schemathesis where its warnings do not count."""

import warnings

with warnings.catch_warnings():
    # schemathesis 4.32 opens a file of its own without naming an encoding; remove this when it no longer does.
    warnings.simplefilter("ignore", EncodingWarning)
    import schemathesis  # noqa: F401
