"""What goes wrong, each with a sentence that names the thing, the reason and the way out.

>>> issubclass(InputError, ValueError) and issubclass(InputError, AnchorhoodError)
True
"""

from __future__ import annotations

__all__ = ["AnchorhoodError", "AnchorhoodWarning", "InputError", "PictureError", "WorkError"]


class AnchorhoodError(Exception):
    """Anything that goes wrong in anchorhood."""


class InputError(AnchorhoodError, ValueError):
    """Something that cannot be asked for: a shape, a setting, a name of nothing."""


class PictureError(AnchorhoodError):
    """A picture that cannot be read, or a data set that raised in its middle; then `__cause__` has its own exception."""


class WorkError(AnchorhoodError, RuntimeError):
    """Something that failed, though it could be asked for."""


class AnchorhoodWarning(UserWarning):
    """Something to know that stops nothing: a file that could not be read, a GPU that does not work."""
