// Reductions by id: 0 sum, 1 maximum, 2 minimum, 3 product. T is the element type.
T reduce_start(uint f) {
#ifdef FLOAT
  return f == 0 ? 0.0 : (f == 1 ? -kInfinity : (f == 2 ? kInfinity : 1.0));
#else
  return f == 0 ? T(0) : (f == 1 ? LOWEST : (f == 2 ? HIGHEST : T(1)));
#endif
}

T reduce_step(uint f, T a, T b) {
  switch (f) {
    case 0: return a + b;
#ifdef FLOAT
    case 1: return max_keep_nan(a, b);
    case 2: return min_keep_nan(a, b);
#else
    case 1: return a < b ? b : a;
    case 2: return b < a ? b : a;
#endif
  }
  return a * b;
}
