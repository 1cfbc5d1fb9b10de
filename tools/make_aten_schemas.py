"""Write what torch's dispatcher knows of its operations: the file that `_dispatch/schemas.py` reads. Needs torch.

python tools/make_aten_schemas.py > src/retrograd/_dispatch/schemas.txt
"""

import torch

LEFT_OUT_TYPES = ("Dimname", "QScheme", "Storage")
# Families without dense tensors on the CPU: they keep their names only.
LEFT_OUT = """_foreach _fused cudnn miopen mkldnn _cudnn _sparse sparse _nested fbgemm _mps _mkldnn quantize mps xnn _test _thnn q_ _cslt
_amp _cuda _triton _jagged _coalesce _to_sparse to_sparse quant _prim to_mkldnn fake_quant _fake_quant""".split()  # noqa: SIM905


def main() -> None:
    """Print one line for each form of an operation; `~` before those that autograd sees through, names alone last."""
    lines, names, tagged = [], set(), {}
    for full in torch._C._dispatch_get_all_op_names():
        if not full.startswith("aten::"):
            continue
        name, _, overload = full.removeprefix("aten::").partition(".")
        names.add(name)
        schema = torch._C._get_schema(f"aten::{name}", overload)
        text = str(schema).removeprefix("aten::")
        if any(one.is_out for one in schema.arguments) or any(one in text for one in LEFT_OUT_TYPES):
            continue
        if name.startswith(tuple(LEFT_OUT)):
            continue
        composite = torch._C._dispatch_has_kernel_for_dispatch_key(full, "CompositeImplicitAutograd")
        lines.append(("~" if composite else "") + text)
        for tag in getattr(getattr(torch.ops.aten, name), overload or "default").tags:
            tagged.setdefault(tag.name, []).append(f"{name}.{overload}" if overload else name)
    print("# torch's operations, as its dispatcher declares them: written by tools/make_aten_schemas.py, do not edit.")
    print("\n".join(sorted(lines, key=lambda line: line.lstrip("~"))))
    shown = {line.lstrip("~").partition("(")[0].partition(".")[0] for line in lines}
    print("\n".join(sorted(names - shown)))
    del tagged["pt2_compliant_tag"]  # which all have
    print("\n".join(f"= {tag} {' '.join(sorted(tagged[tag]))}" for tag in sorted(tagged)))


main()
