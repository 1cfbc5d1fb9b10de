"""`lobpcg`: a few largest or smallest eigenvalues of a symmetric matrix.

torch iterates from random vectors until a tolerance is met. Matrices here are dense, so that all eigenvalues cost little more: they
are computed directly, and the ones that were asked for are returned. The numbers are those that torch's iteration approaches.
"""

from __future__ import annotations

from typing import Any

from ...overrides import overridable
from .cholesky import linalg_cholesky as cholesky
from .eigen import linalg_eigh as eigh
from .solving import solve_triangular


@overridable
def lobpcg(
    A: Any,  # noqa: N803 - torch's name
    k: int | None = None,
    B: Any = None,  # noqa: N803 - torch's name
    X: Any = None,  # noqa: N803 - torch's name
    n: int | None = None,
    iK: Any = None,  # noqa: N803 - torch's name
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Any = None,
    ortho_iparams: Any = None,
    ortho_fparams: Any = None,
    ortho_bparams: Any = None,
) -> tuple[Any, Any]:
    """Return `k` extreme eigenvalues and their vectors: of A, or of A x = E B x. What steers an iteration changes nothing."""
    if A.shape[-1] != A.shape[-2]:
        raise AssertionError(f"A must be square, got shape {A.shape}")
    if tracker is not None:
        raise NotImplementedError(
            "lobpcg with a tracker: retrograd computes eigenvalues directly, without steps to track"
        )
    count = (1 if X is None else X.shape[-1]) if k is None else k
    rows = A.shape[-1]
    if rows < 3 * (count if n is None else n):
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={rows}) is smaller than 3 x the number of "
            f"requested eigenpairs (={count if n is None else n})"
        )
    if B is None:
        values, vectors = eigh((A + A.mT) / 2)
    else:
        factor = cholesky(B)
        half = solve_triangular(factor, A, upper=False)
        values, vectors = eigh(solve_triangular(factor, half.mT, upper=False))
        vectors = solve_triangular(factor.mT, vectors, upper=True)
    if largest is None or largest:
        values, vectors = values.flip(-1), vectors.flip(-1)
    return values[..., :count], vectors[..., :count]
