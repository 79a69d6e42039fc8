// Windows of pools in up to three spatial dimensions; x [N,S..,C]. kWidth 4: groups of four channels, which
// `channels` then counts.
layout(constant_id = 1) const uint kMode = 0;
layout(constant_id = 2) const uint kWidth = 1;
layout(push_constant) uniform P {
  uint count, channels;
  uint in_extent[3], out_extent[3], kernel[3], stride[3];
  int pad[3];
  uint dilation[3];
  int counted_end[3];  // positions below this count in an average
  int counted_begin[3];
};

// How many elements an average divides by along one axis.
uint counted(uint axis, uint window) {
  uint n = 0;
  for (uint t = 0; t < kernel[axis]; ++t) {
    int at = int(window * stride[axis] + t * dilation[axis]) - pad[axis];
    n += at >= counted_begin[axis] && at < counted_end[axis] ? 1 : 0;
  }
  return n;
}
