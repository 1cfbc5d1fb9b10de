"""The index of names of `nn`: functions of the package and methods of Tensor that stand there.

Written by tools/make_names.py; do not edit.
"""

from __future__ import annotations

from .tensor import install_names
from .tensor._names import Names

LAYERS = {
    "nn.functional._torch_losses": Names(
        functions="""kl_div binary_cross_entropy_with_logits poisson_nll_loss hinge_embedding_loss margin_ranking_loss
        cosine_embedding_loss triplet_margin_loss ctc_loss""",
    ),
    "nn.functional._torch_normalization": Names(
        functions="""layer_norm rms_norm group_norm batch_norm instance_norm native_layer_norm native_group_norm native_batch_norm
        _native_batch_norm_legit""",
    ),
    "nn.functional._distances": Names(functions="cosine_similarity pairwise_distance"),
    "nn.utils.weight_norm": Names(functions="norm_except_dim _weight_norm"),
    "nn.functional._torch_fake_quantize": Names(
        functions="fake_quantize_per_tensor_affine fake_quantize_per_channel_affine",
    ),
    "nn.functional._torch_recurrent": Names(
        functions="lstm gru rnn_tanh rnn_relu lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell",
    ),
    "nn.functional._torch_activations": Names(functions="selu celu rrelu threshold"),
    "nn.functional._activations": Names(both="hardshrink prelu", functions="selu_ celu_ threshold_ rrelu_"),
    "nn.functional._torch_dropout": Names(
        functions="""dropout dropout_ alpha_dropout alpha_dropout_ feature_dropout feature_dropout_ feature_alpha_dropout
        feature_alpha_dropout_ native_dropout native_dropout_backward""",
    ),
    "nn.functional._linear": Names(functions="bilinear"),
    "nn.functional._torch_embedding": Names(functions="embedding embedding_renorm_ embedding_bag"),
    "nn.functional._torch_pooling": Names(
        functions="adaptive_max_pool1d max_pool1d max_pool1d_with_indices max_pool2d max_pool3d",
    ),
    "nn.functional._pooling": Names(functions="avg_pool1d adaptive_avg_pool1d"),
    "nn.functional._resizing": Names(functions="grid_sampler grid_sampler_2d grid_sampler_3d affine_grid_generator"),
    "nn.functional._shuffling": Names(
        functions="pixel_shuffle pixel_unshuffle channel_shuffle native_channel_shuffle",
    ),
    "nn.functional._convolution": Names(
        functions="conv1d conv_transpose1d conv2d conv_transpose2d conv3d conv_transpose3d convolution conv_tbc",
    ),
}


def install() -> None:
    """Let the tensors' table find these names: layers below `nn` do not know them."""
    install_names(LAYERS)
