"""Make docs/pictures/gallery.png, the picture in README.md, of the pictures that the examples draw.

python tools/make_collage.py    after an example has drawn a new picture into docs/pictures/
"""

from __future__ import annotations

from pathlib import Path

from PIL import Image

PICTURES = Path(__file__).parent.parent / "docs" / "pictures"
NAMES = ("vae", "gpt", "neural_ode", "wgan_gp", "lstm", "pinn")
COLUMNS, GAP, WIDTH = 3, 16, 420


def main() -> None:
    pictures = [Image.open(PICTURES / f"{name}.png").convert("RGB") for name in NAMES]
    height = max(round(one.height * WIDTH / one.width) for one in pictures)
    rows = -(-len(pictures) // COLUMNS)
    sheet = Image.new("RGB", (COLUMNS * (WIDTH + GAP) + GAP, rows * (height + GAP) + GAP), "white")
    for i, picture in enumerate(pictures):
        small = picture.resize((WIDTH, round(picture.height * WIDTH / picture.width)), Image.Resampling.LANCZOS)
        row, column = divmod(i, COLUMNS)
        top = GAP + row * (height + GAP) + (height - small.height) // 2
        sheet.paste(small, (GAP + column * (WIDTH + GAP), top))
    sheet.quantize(128).save(PICTURES / "gallery.png", optimize=True)


if __name__ == "__main__":
    main()
