// Decomposes a linear index of a collapsed index space; kRank axes, outermost first.
#define RT_FOR_AXES_REVERSED(axis) [[unroll]] for (int axis = int(kRank) - 1; axis >= 0; --axis)
