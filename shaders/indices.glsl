// Integer operands of i32, or i64 as pairs of words, low word first; index_words is 1 or 2. Values that do not fit 32 bits
// saturate, so that an index outside an axis stays outside.
#define RT_INTEGER(words, index_words, i) ((index_words) == 1 ? words[i] : saturated(words[2 * (i)], words[2 * (i) + 1]))
int saturated(int low, int high) { return high == low >> 31 ? low : (high < 0 ? int(0x80000000) : 0x7fffffff); }

// The position that an index selects, as selected_position() of runtime/geometry/indexing.h; extent > 0.
uint selected_position(int index, int extent) { return uint(clamp(index < 0 ? index + extent : index, 0, extent - 1)); }
