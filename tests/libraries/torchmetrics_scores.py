"""torchmetrics: collections over batches, regression, images."""

import torch
from torchmetrics import (
    AUROC,
    Accuracy,
    ConfusionMatrix,
    F1Score,
    MeanSquaredError,
    MetricCollection,
    PearsonCorrCoef,
    R2Score,
)
from torchmetrics.classification import BinaryAveragePrecision, MulticlassCalibrationError
from torchmetrics.image import PeakSignalNoiseRatio, StructuralSimilarityIndexMeasure
from torchmetrics.regression import SpearmanCorrCoef

torch.manual_seed(0)
metrics = MetricCollection(
    [
        Accuracy(task="multiclass", num_classes=4),
        F1Score(task="multiclass", num_classes=4, average="macro"),
        AUROC(task="multiclass", num_classes=4),
    ]
)
for _ in range(3):
    p = torch.randn(20, 4).softmax(-1)
    t = torch.randint(0, 4, (20,))
    metrics.update(p, t)
print({k: round(v.item(), 4) for k, v in metrics.compute().items()})
a, b = (torch.randn(30), torch.randn(30))
print([round(m(a, b).item(), 4) for m in (MeanSquaredError(), R2Score(), PearsonCorrCoef(), SpearmanCorrCoef())])
print(
    ConfusionMatrix(task="multiclass", num_classes=4)(p, t).tolist(),
    round(MulticlassCalibrationError(4)(p, t).item(), 4),
    round(BinaryAveragePrecision()(torch.rand(30), torch.randint(0, 2, (30,))).item(), 4),
)
i, j = (torch.rand(2, 3, 24, 24), torch.rand(2, 3, 24, 24))
print(
    round(PeakSignalNoiseRatio(data_range=1.0)(i, j).item(), 4),
    round(StructuralSimilarityIndexMeasure(data_range=1.0)(i, j).item(), 4),
)
