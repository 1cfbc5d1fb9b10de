"""torch._inductor: torch's compiler. Nothing is compiled here; its settings can be set, and the rest says what it needs."""

from retrograd._absent import finder
from retrograd._compiler_settings import Settings

config = Settings(
    coordinate_descent_check_all_directions=False,
    coordinate_descent_tuning=False,
    cpp=Settings(),
    cpp_wrapper=False,
    debug=False,
    eager_numerics=Settings(),
    epilogue_fusion=True,
    force_fuse_int_mm_with_mul=False,
    force_disable_caches=False,
    freezing=False,
    fx_graph_cache=True,
    max_autotune=False,
    max_autotune_gemm_search_space="DEFAULT",
    post_grad_custom_post_pass=None,
    post_grad_custom_pre_pass=None,
    pre_grad_custom_pass=None,
    triton=Settings(cudagraphs=False, unique_kernel_names=True),
)
__getattr__ = finder("torch._inductor")


def cudagraph_mark_step_begin() -> None:
    """Accept that a step begins: no graph of CUDA is recorded."""


__all__ = ["config", "cudagraph_mark_step_begin"]
