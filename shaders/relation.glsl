// Whether u (relation) v, of type T; kCompareLess and so on are the values of CompareFunction. FLOAT: T is float, and NaN is
// in no relation.
#include "function_numbers.glsl"
bool is_related(uint relation, T u, T v) {
  bool r = false;
  switch (relation) {
    case kCompareEqual: r = u == v; break;
    case kCompareLess: r = u < v; break;
    case kCompareLessOrEqual: r = u <= v; break;
    case kCompareGreater: r = u > v; break;
    case kCompareGreaterOrEqual: r = u >= v; break;
  }
#ifdef FLOAT
  if (is_nan(u) || is_nan(v)) r = false;
#endif
  return r;
}
