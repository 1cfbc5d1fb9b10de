"""kornia: filters, colours, geometry and augmentation of a made image, a loss with its gradient, and a homography fitted by descent."""

import kornia
import torch

torch.manual_seed(0)
rows, columns = torch.meshgrid(torch.linspace(0, 3, 32), torch.linspace(0, 3, 32), indexing="ij")
image = torch.stack([rows.sin().abs(), columns.cos().abs(), (rows * columns).sin().abs()])[None]


def show(name, value):
    print(name, tuple(value.shape), f"mean {value.mean().item():.4f} spread {value.std().item():.4f}")


show("gaussian", kornia.filters.gaussian_blur2d(image, (5, 5), (1.5, 1.5)))
show("sobel", kornia.filters.sobel(image))
show("laplacian", kornia.filters.laplacian(image, 3))
show("median", kornia.filters.median_blur(image, (3, 3)))
show("bilateral", kornia.filters.bilateral_blur(image, (3, 3), 0.1, (1.5, 1.5)))
show("gradients", kornia.filters.spatial_gradient(image))
edges, thin = kornia.filters.canny(image)
show("canny", edges)
print("edges", int(thin.sum()))
show("grey", kornia.color.rgb_to_grayscale(image))
show("hsv", kornia.color.rgb_to_hsv(image))
show("lab", kornia.color.rgb_to_lab(image))
show("equalized", kornia.enhance.equalize_clahe(image, grid_size=(4, 4)))
show("eroded", kornia.morphology.erosion(image, torch.ones(3, 3)))
show("rotated", kornia.geometry.rotate(image, torch.tensor([30.0])))
show("resized", kornia.geometry.resize(image, (16, 24)))
show("pyramid", kornia.geometry.pyrdown(image))
around = kornia.geometry.get_rotation_matrix2d(torch.tensor([[16.0, 16.0]]), torch.tensor([20.0]), torch.ones(1, 2))
show("affine", kornia.geometry.warp_affine(image, around, (32, 32)))
square = torch.tensor([[[0.0, 0.0], [31.0, 0.0], [31.0, 31.0], [0.0, 31.0]]])
corners = torch.tensor([[[2.0, 1.0], [29.0, 3.0], [30.0, 28.0], [1.0, 30.0]]])
plane = kornia.geometry.get_perspective_transform(square, corners)
print("plane", [[round(value, 3) for value in row] for row in plane[0].tolist()])
show("warped", kornia.geometry.warp_perspective(image, plane, (32, 32)))
quaternion = kornia.geometry.conversions.axis_angle_to_quaternion(torch.tensor([[0.3, -0.2, 0.9]]))
print("quaternion", [round(value, 4) for value in quaternion[0].tolist()])
show("corners", kornia.feature.harris_response(kornia.color.rgb_to_grayscale(image)))

parameter = image.clone().requires_grad_()
loss = kornia.losses.ssim_loss(kornia.filters.gaussian_blur2d(parameter, (3, 3), (1.0, 1.0)), image, 5)
loss = loss + kornia.losses.total_variation(parameter).mean() * 1e-4
loss.backward()
print(f"loss {loss.item():.4f} gradient {parameter.grad.norm().item():.4f}")

transform = kornia.augmentation.AugmentationSequential(
    kornia.augmentation.RandomHorizontalFlip(p=1.0),
    kornia.augmentation.RandomAffine(15.0, p=1.0),
    kornia.augmentation.ColorJiggle(0.1, 0.1, 0.1, 0.1, p=1.0),
)
show("augmented", transform(image))

shift = torch.zeros(1, 2, requires_grad=True)
target = kornia.geometry.translate(image, torch.tensor([[1.5, -1.0]]))
optimizer = torch.optim.Adam([shift], lr=0.2)
for _ in range(30):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(kornia.geometry.translate(image, shift), target)
    loss.backward()
    optimizer.step()
print("shift", [round(value, 2) for value in shift[0].tolist()])
