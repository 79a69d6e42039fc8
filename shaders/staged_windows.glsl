// GEMM rows that are windows of an image [N,in_h,in_w,..]: the start of each of a workgroup's kGroupRows is computed
// once. Rows past the end start above every image.
shared int window_y[kGroupRows], window_x[kGroupRows];
shared uint window_image[kGroupRows];

// Call before the first pixel_of(), with a barrier between.
void find_windows(uint row, uint lane, uint lanes) {
  for (uint i = lane; i < kGroupRows; i += lanes) {
    uint line = (row + i) / out_w;
    window_y[i] = row + i < m ? int(line % out_h * stride_h) - pad_h : -0x40000000;
    window_x[i] = int((row + i) % out_w * stride_w) - pad_w;
    window_image[i] = line / out_h * in_h * in_w;
  }
}

// Offset of a tap from the start of its window.
ivec2 tap_of(uint tap) { return ivec2(tap / kernel_w * dilation_h, tap % kernel_w * dilation_w); }

// False for a padding tap.
bool pixel_of(uint r, ivec2 tap, out uint pixel) {
  int y = window_y[r] + tap.x, x = window_x[r] + tap.y;
  pixel = window_image[r] + uint(y) * in_w + uint(x);
  return uint(y) < in_h && uint(x) < in_w;
}
