"""captum: which inputs, layers and neurons an output comes from."""

import numpy
import torch
from captum.attr import (
    LRP,
    DeepLift,
    FeatureAblation,
    GradientShap,
    GuidedBackprop,
    InputXGradient,
    IntegratedGradients,
    LayerConductance,
    LayerGradCam,
    NeuronConductance,
    NoiseTunnel,
    Occlusion,
    Saliency,
    ShapleyValueSampling,
)

torch.manual_seed(0)
numpy.random.seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
x = torch.randn(5, 4)


def shown(t):
    return [round(v, 4) for v in t.detach().flatten().tolist()[:4]]


for Method in (
    IntegratedGradients,
    Saliency,
    DeepLift,
    FeatureAblation,
    InputXGradient,
    GuidedBackprop,
    ShapleyValueSampling,
    LRP,
):
    print(Method.__name__, shown(Method(model).attribute(x, target=1)))
print(
    shown(LayerConductance(model, model[0]).attribute(x, target=1)),
    shown(NeuronConductance(model, model[0]).attribute(x, neuron_selector=2, target=1)),
)
print(shown(GradientShap(model).attribute(x, baselines=torch.zeros(3, 4), target=0)))
print(shown(NoiseTunnel(Saliency(model)).attribute(x, nt_samples=3, target=0)))
images = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(4 * 36, 2))
image = torch.randn(2, 1, 8, 8)
print(
    shown(LayerGradCam(images, images[0]).attribute(image, target=1)),
    shown(Occlusion(images).attribute(image, sliding_window_shapes=(1, 3, 3), target=0)),
)
