// The transforms of Winograd's convolution F(4x4, 3x3) (Lavin & Gray 2016, arXiv:1509.09308), of values of type V: four
// channels, or one.

// B' x
void patch_points(const V x[6], out V y[6]) {
  V even = x[4] - 4.0 * x[2], odd = x[3] - 4.0 * x[1], outer = x[4] - x[2], inner = 2.0 * (x[3] - x[1]);
  y[0] = 4.0 * x[0] - 5.0 * x[2] + x[4];
  y[1] = even + odd;
  y[2] = even - odd;
  y[3] = outer + inner;
  y[4] = outer - inner;
  y[5] = 4.0 * x[1] - 5.0 * x[3] + x[5];
}

// A' x
void points_results(const V x[6], out V y[4]) {
  V sum1 = x[1] + x[2], difference1 = x[1] - x[2], sum2 = x[3] + x[4], difference2 = x[3] - x[4];
  y[0] = x[0] + sum1 + sum2;
  y[1] = difference1 + 2.0 * difference2;
  y[2] = sum1 + 4.0 * sum2;
  y[3] = difference1 + 8.0 * difference2 + x[5];
}
