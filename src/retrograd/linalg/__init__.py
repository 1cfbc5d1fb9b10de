"""Linear algebra under torch's names."""

from .._ops.matrices import LinAlgError
from ..tensor._functions.cholesky import linalg_cholesky as cholesky
from ..tensor._functions.cholesky import linalg_cholesky_ex as cholesky_ex
from ..tensor._functions.eigen import linalg_eig as eig
from ..tensor._functions.eigen import linalg_eigh as eigh
from ..tensor._functions.eigen import linalg_eigvals as eigvals
from ..tensor._functions.eigen import linalg_eigvalsh as eigvalsh
from ..tensor._functions.least_squares import lstsq, matrix_rank, pinv
from ..tensor._functions.lu import linalg_ldl_factor as ldl_factor
from ..tensor._functions.lu import linalg_ldl_factor_ex as ldl_factor_ex
from ..tensor._functions.lu import linalg_ldl_solve as ldl_solve
from ..tensor._functions.lu import linalg_lu as lu
from ..tensor._functions.lu import linalg_lu_factor as lu_factor
from ..tensor._functions.lu import linalg_lu_factor_ex as lu_factor_ex
from ..tensor._functions.lu import linalg_lu_solve as lu_solve
from ..tensor._functions.matrix_functions import linalg_diagonal as diagonal
from ..tensor._functions.matrix_functions import linalg_matrix_power as matrix_power
from ..tensor._functions.matrix_functions import matrix_exp, vander
from ..tensor._functions.matrix_products import matmul
from ..tensor._functions.norms import cond, matrix_norm, vector_norm
from ..tensor._functions.norms import linalg_norm as norm
from ..tensor._functions.products import linalg_cross as cross
from ..tensor._functions.products import multi_dot, vecdot
from ..tensor._functions.qr import linalg_householder_product as householder_product
from ..tensor._functions.qr import linalg_qr as qr
from ..tensor._functions.solving import inv, inv_ex, solve, solve_ex, solve_triangular, tensorinv, tensorsolve
from ..tensor._functions.solving import linalg_det as det
from ..tensor._functions.solving import linalg_slogdet as slogdet
from ..tensor._functions.svd import linalg_svd as svd
from ..tensor._functions.svd import linalg_svdvals as svdvals

__all__ = [name for name in dir() if not name.startswith("_")]
