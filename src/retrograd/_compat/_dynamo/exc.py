"""torch._dynamo.exc: errors about programs that cannot be traced."""

from __future__ import annotations

from enum import Enum

from retrograd._absent import finder

__getattr__ = finder("torch._dynamo.exc")


class TorchDynamoException(RuntimeError):  # noqa: N818 - torch's name
    """What went wrong in tracing."""


class Unsupported(TorchDynamoException):
    """A program does what no trace holds."""


class InvalidBackend(TorchDynamoException):
    """There is no backend of a name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Invalid backend: {name!r}, see `torch._dynamo.list_backends()` for available backends.")


class BackendCompilerFailed(TorchDynamoException):
    """A backend raised, or returned nothing that can be called."""

    def __init__(self, backend_name: str, inner_exception: Exception) -> None:
        kind = type(inner_exception).__name__
        super().__init__(f"backend={backend_name!r} raised:\n{kind}: {inner_exception}")
        self.backend_name, self.inner_exception = backend_name, inner_exception


class UserErrorType(Enum):
    """What is wrong with a program."""

    DYNAMIC_CONTROL_FLOW, ANTI_PATTERN, STANDARD_LIBRARY, CONSTRAINT_VIOLATION, DYNAMIC_DIM = range(1, 6)
    INVALID_INPUT, INVALID_OUTPUT, UNSUPPORTED_ALIASED_MUTATED_DYNAMIC_INPUTS = range(6, 9)


class UserError(Unsupported):
    """A program, or what was said of it, cannot be traced."""

    def __init__(self, error_type: UserErrorType, msg: str, case_name: str | None = None) -> None:
        super().__init__(msg)
        self.error_type, self.message, self.msg = error_type, msg, msg
