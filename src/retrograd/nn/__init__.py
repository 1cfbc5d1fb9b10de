"""torch.nn: modules and their parameters."""

from . import init, modules, parameter
from .modules import Module, ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
from .parameter import Buffer, Parameter

__all__ = [
    "Buffer",
    "Module",
    "ModuleDict",
    "ModuleList",
    "Parameter",
    "ParameterDict",
    "ParameterList",
    "Sequential",
    "init",
    "modules",
    "parameter",
]
