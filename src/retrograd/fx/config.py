"""Settings of graphs, with torch's defaults. Passes here show no progress, and tracers note places when they are told to."""

disable_progress = True
verbose_progress = False
do_not_emit_stack_traces = False
