"""Native code from formulas: a formula in `xp` becomes an expression graph, the graph loops, the loops machine code.

`expression`: the graph. `trace`: arrays that write down what a formula does to them. `math`: mathematical functions as polynomials over
the graph's own nodes (`exponentials`, `trigonometry` and `special`, which share `formats` and `coefficients`). `loops`: which values
are computed in which loop. `llvm`: loops as text for LLVM, the only file that knows about it. `machine`: text to machine code, kept on
disk by `cache`, in one piece that needs no linker by `flat`. `program`: formulas that arrays are given to.
`nests`: loops written by hand; `windows`: those of pooling and of depthwise convolution; `gathers`: adding at indices;
`resampling`: interpolation; `turning`: copies of what lies the other way.
`numpy_text`: formulas as calls of NumPy's functions in a row, for small arrays.
Without llvmlite the same formulas run on NumPy, block by block.
"""
