"""Ready-made parametrizations: orthogonal weights, weights of given norms, weights of spectral norm one."""

from __future__ import annotations

from enum import Enum, auto
from typing import Any

from ..._dtypes import finfo
from ..._modes import using
from ..._tracebacks import guarded
from ...linalg import householder_product, solve
from ...tensor._functions.creation import zeros_like
from ...tensor._functions.elementwise_pairs import allclose
from ...tensor._functions.joining import cat
from ...tensor._functions.matrix_products import mv, vdot
from ...tensor._functions.random_tensors import randn
from ...tensor._functions.ranges import eye
from ...tensor._tensor import Tensor
from ..modules.module import Module
from . import parametrize
from .spectral_norm import outputs_dim, unit
from .weight_norm import _weight_norm, norm_except_dim


def _parametrized_tensor(module: Any, name: str) -> Any:
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return weight


# ---- orthogonal ----
class _OrthMaps(Enum):
    matrix_exp = auto()
    cayley = auto()
    householder = auto()


def _is_orthogonal(q: Any) -> bool:
    rows, columns = q.size(-2), q.size(-1)
    identity = eye(columns, dtype=q.dtype, device=q.device)
    return bool(allclose(q.mH @ q, identity, atol=10.0 * rows * finfo(q.dtype).eps))


def _made_orthogonal(matrix: Any) -> Any:
    """Return the Q of a tall matrix whose R has a positive diagonal."""
    packed, tau = matrix.geqrf()
    return householder_product(packed, tau) * packed.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


class _Orthogonal(Module):
    def __init__(self, weight: Any, orthogonal_map: _OrthMaps, *, use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map is _OrthMaps.householder:
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Any) -> Any:  # noqa: N803 - torch's name
        """Return the orthogonal matrix of a tall or wide one."""
        wide = X.size(-2) < X.size(-1)
        tall = X.mT if wide else X
        q = self._reflected(tall) if self.orthogonal_map is _OrthMaps.householder else self._turned(tall)
        if hasattr(self, "base"):
            q = self.base @ q
        return q.mT if wide else q

    def _turned(self, x: Any) -> Any:
        """Map the lower triangle, as a skew-symmetric matrix, to a rotation."""
        rows, columns = x.size(-2), x.size(-1)
        x = x.tril()
        if rows != columns:
            x = cat([x, x.new_zeros(rows, rows - columns).expand(*x.shape[:-2], -1, -1)], dim=-1)
        skew = x - x.mH
        if self.orthogonal_map is _OrthMaps.matrix_exp:
            q = skew.matrix_exp()
        else:
            identity = eye(rows, dtype=skew.dtype, device=skew.device)
            q = solve(identity.add(skew, alpha=-0.5), identity.add(skew, alpha=0.5))
        return q if rows == columns else q[..., :columns]

    def _reflected(self, x: Any) -> Any:
        """Multiply the reflections whose vectors stand below the diagonal; the diagonal holds signs."""
        vectors = x.tril(diagonal=-1)
        tau = 2.0 / (1.0 + (vectors * vectors).sum(dim=-2))
        return householder_product(vectors, tau) * x.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)

    def right_inverse(self, Q: Any) -> Any:  # noqa: N803 - torch's name
        """Return what `forward` maps to a matrix, or to the orthogonal matrix next to it."""
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {Q.shape}."
            )
        with using(grad=False):
            wide = Q.size(-2) < Q.size(-1)
            tall = Q.mT if wide else Q
            if not hasattr(self, "base"):
                found = self._reflections_of(tall)
                return found.mT if wide else found
            self._rebase(tall)
            origin = zeros_like(Q)  # householder maps it to the identity, and the others do not look at the diagonal
            origin.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
            return origin

    def _reflections_of(self, q: Any) -> Any:
        if self.orthogonal_map is not _OrthMaps.householder:
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                "use_trivialization=False."
            )
        packed, tau = q.geqrf()
        signs = packed.diagonal(dim1=-2, dim2=-1)
        signs.copy_(signs.sign().where(tau != 0.0, -signs.sign()))
        return packed

    def _rebase(self, q: Any) -> None:
        rows, columns = q.size(-2), q.size(-1)
        if rows != columns:
            rest = randn(*q.size()[:-2], rows, rows - columns, dtype=q.dtype, device=q.device)
            self.base = _made_orthogonal(cat([q, rest], dim=-1))
        else:
            self.base = q.clone() if _is_orthogonal(q) else _made_orthogonal(q)


@guarded
def orthogonal(
    module: Any, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Any:
    """Keep a matrix (or a batch of them) orthogonal, or unitary."""
    weight = _parametrized_tensor(module, name)
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1)
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in _OrthMaps.__members__:
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    made = _Orthogonal(weight, _OrthMaps[orthogonal_map], use_trivialization=use_trivialization)
    return parametrize.register_parametrization(module, name, made, unsafe=True)


# ---- weight norm ----
class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Any, weight_v: Any) -> Any:
        """Return the weight of a length and a direction."""
        return _weight_norm(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Any) -> Any:
        """Return the length and the direction of a weight."""
        return norm_except_dim(weight, 2, self.dim), weight


class _OldNames:
    """Loads what the old `weight_norm` has saved."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        old = [f"{prefix}{self.name}_g", f"{prefix}{self.name}_v"]
        if all(key in state_dict for key in old):
            for k, key in enumerate(old):
                state_dict[f"{prefix}parametrizations.{self.name}.original{k}"] = state_dict.pop(key)


@guarded
def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Let a module learn the length and the direction of a weight apart; `dim` None takes the norm of all of it."""
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)
    module._register_load_state_dict_pre_hook(_OldNames(name))
    return module


# ---- spectral norm ----
class _SpectralNorm(Module):
    def __init__(self, weight: Any, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        ndim = weight.ndim
        if not -ndim <= dim < ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim = dim % ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._reshape_weight_to_matrix(weight)
            rows, columns = matrix.size()
            u = matrix.new_empty(rows).normal_(0, 1)
            v = matrix.new_empty(columns).normal_(0, 1)
            self.register_buffer("_u", unit(u, eps))
            self.register_buffer("_v", unit(v, eps))
            self._power_method(matrix, 15)

    def _reshape_weight_to_matrix(self, weight: Any) -> Any:
        return weight.movedim(self.dim, 0).flatten(1)

    def _power_method(self, matrix: Any, n_power_iterations: int) -> None:
        with using(grad=False):
            for _ in range(n_power_iterations):
                unit(mv(matrix, self._v), self.eps, self._u)
                unit(mv(matrix.mH, self._u), self.eps, self._v)

    def forward(self, weight: Any) -> Any:
        """Return a weight of spectral norm one; in training after a step of the power iteration."""
        if weight.ndim == 1:
            return unit(weight, self.eps)
        matrix = self._reshape_weight_to_matrix(weight)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        # Copies: the next forward writes into the buffers, and this graph still needs their values.
        return weight / vdot(self._u.clone(), mv(matrix, self._v.clone()))

    def right_inverse(self, value: Any) -> Any:
        """Return the value: it is expected to have the norm already."""
        return value


@guarded
def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
    """Divide a weight by its largest singular value, which a power iteration follows."""
    weight = _parametrized_tensor(module, name)
    made = _SpectralNorm(weight, n_power_iterations, outputs_dim(module) if dim is None else dim, eps)
    return parametrize.register_parametrization(module, name, made)


__all__ = ["orthogonal", "spectral_norm", "weight_norm"]
