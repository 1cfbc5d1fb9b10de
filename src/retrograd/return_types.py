"""The classes of torch's named results, by name."""

from __future__ import annotations

from typing import Any

from .tensor._object.return_types import make

_FIELDS = {
    "aminmax": "min max",
    "cummax": "values indices",
    "cummin": "values indices",
    "frexp": "mantissa exponent",
    "geqrf": "a tau",
    "histogram": "hist bin_edges",
    "histogramdd": "hist bin_edges",
    "kthvalue": "values indices",
    "linalg_cholesky_ex": "L info",
    "linalg_eig": "eigenvalues eigenvectors",
    "linalg_eigh": "eigenvalues eigenvectors",
    "linalg_inv_ex": "inverse info",
    "linalg_ldl_factor": "LD pivots",
    "linalg_ldl_factor_ex": "LD pivots info",
    "linalg_lstsq": "solution residuals rank singular_values",
    "linalg_lu": "P L U",
    "linalg_lu_factor": "LU pivots",
    "linalg_lu_factor_ex": "LU pivots info",
    "linalg_qr": "Q R",
    "linalg_slogdet": "sign logabsdet",
    "linalg_solve_ex": "result info",
    "linalg_svd": "U S Vh",
    "lu_unpack": "P L U",
    "max": "values indices",
    "median": "values indices",
    "min": "values indices",
    "mode": "values indices",
    "nanmedian": "values indices",
    "qr": "Q R",
    "slogdet": "sign logabsdet",
    "sort": "values indices",
    "svd": "U S V",
    "topk": "values indices",
    "triangular_solve": "solution cloned_coefficient",
}


# What torch returns for a call with `out`: a class of its own, with the same fields.
_FIELDS |= {f"{name}_out": fields for name, fields in _FIELDS.items() if name != "histogramdd"}


def pytree_register_structseq(cls: Any) -> None:
    """Tell `utils._pytree` how to take results of a class apart."""
    from .utils._pytree import register_pytree_node

    register_pytree_node(cls, lambda value: (list(value), None), lambda values, context: cls(values))


def __getattr__(name: str) -> Any:
    if name in _FIELDS:
        return make(name, *_FIELDS[name].split())
    if name == "all_return_types":
        return [make(one, *fields.split()) for one, fields in sorted(_FIELDS.items())]
    raise AttributeError(f"module 'torch.return_types' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(_FIELDS)
