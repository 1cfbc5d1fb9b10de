"""Layers of many kinds: recurrent, attention, convolutions, normalisations, losses."""

import torch
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

torch.manual_seed(0)
x = torch.randn(3, 5, 4)
output, (hidden, cell) = nn.LSTM(4, 6, num_layers=2, batch_first=True, bidirectional=True)(x)
print(output.shape, hidden.shape, cell.shape)
states, last = nn.GRU(4, 6)(x)
print(states.shape, last.shape)
attended, weights = nn.MultiheadAttention(4, num_heads=2, batch_first=True)(x, x, x, need_weights=True)
print(attended.shape, weights.shape)
encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, dropout=0.0), num_layers=2)
print(encoder(x).shape, nn.Transformer.generate_square_subsequent_mask(3).shape)
image = torch.randn(1, 3, 8, 8)
net = nn.Sequential(
    nn.Conv2d(3, 4, kernel_size=(3, 3), stride=2, padding=1),
    nn.GroupNorm(2, 4),
    nn.SiLU(inplace=True),
    nn.MaxPool2d(2),
    nn.Upsample(scale_factor=2, mode="nearest"),
    nn.AdaptiveAvgPool2d((1, 1)),
    nn.Flatten(),
)
print(net(image).shape, parameters_to_vector(net.parameters()).shape)
embedding = nn.Embedding(10, 4, padding_idx=0)
print(embedding(torch.tensor([[0, 1]])).shape, embedding.weight.shape, nn.LayerNorm(4)(x).shape)
padded: Tensor = pad_sequence([torch.ones(2), torch.ones(3)], batch_first=True)
packed = pack_padded_sequence(padded.unsqueeze(-1), torch.tensor([2, 3]), batch_first=True, enforce_sorted=False)
unpacked, lengths = pad_packed_sequence(packed, batch_first=True)
print(unpacked.shape, lengths)
target = torch.tensor([1, 0, 3])
print(nn.CrossEntropyLoss(label_smoothing=0.1)(x[:, 0], target).dim(), nn.MSELoss(reduction="none")(x, x * 2).shape)
print(nn.BCEWithLogitsLoss()(x, torch.ones_like(x)).dim(), nn.functional.cross_entropy(x[:, 0], target).shape)
linear = nn.Linear(4, 4, bias=False)
print(linear.weight.shape, linear.bias, linear.in_features + 1, nn.Dropout(0.5).eval()(x).equal(x))
