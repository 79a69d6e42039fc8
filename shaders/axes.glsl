// Decomposes a linear index of a collapsed index space; kRank axes, outermost first.
#define RT_FOR_AXES_REVERSED(axis) [[unroll]] for (int axis = int(kRank) - 1; axis >= 0; --axis)
// The index along an axis, of what is left of the linear index; the outermost axis needs no division.
#define RT_INDEX_OF(axis, rest) ((axis) == 0 ? (rest) : (rest) % extent[axis])
