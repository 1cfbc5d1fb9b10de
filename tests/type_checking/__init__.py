"""What type checkers say of programs that say `import torch`, where this package is installed and torch is not."""
