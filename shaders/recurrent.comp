#version 450
#extension GL_GOOGLE_include_directive : require
// Steps of an LSTM, GRU or RNN: the matmul of h with r, gates, the new state. x w of all steps is computed before.
// A workgroup has kRows rows of one direction. It runs steps [first, last) with all hidden units, synchronized by
// barriers (kForm 0: h in shared memory), or `units` of them of one step (kForm 1: h in a buffer; a GRU whose reset gate
// comes before the matmul then takes two dispatches, selected by `phases`).
// r is [direction][h/4][gate][unit] vec4, so that the lanes, along the units, load contiguously.
// variants: recurrent_{buffer|texel TEXEL}
#include "common.glsl"
#include "functions.glsl"
#include "load.glsl"
#include "recurrent.glsl"
const bool kReset = kCell == 1 && !kLinear;

layout(set = 0, binding = 2, std430) readonly buffer FromX { float from_x[]; };  // [steps][batch][direction][gate][unit]
layout(set = 0, binding = 3, std430) readonly buffer Bias { float bias[]; };     // [direction][2][gate][unit]
layout(set = 0, binding = 4, std430) writeonly buffer Y { float y[]; };
layout(set = 0, binding = 5, std430) buffer H { float h[]; };           // [2][direction][batch][vec4s * 4]
layout(set = 0, binding = 5, std430) buffer H4 { vec4 h4[]; };
layout(set = 0, binding = 6, std430) buffer C { float c[]; };
layout(set = 0, binding = 8, std430) readonly buffer Peepholes { float peepholes[]; };  // [direction][i o f][unit]
layout(set = 0, binding = 9, std430) buffer Reset { float reset[]; };   // reset * h: [direction][batch][vec4s * 4]
layout(set = 0, binding = 9, std430) buffer Reset4 { vec4 reset4[]; };
// h before and after the step, and reset * h: [3][kRows][vec4s]
shared vec4 shared_rows[kSharedVec4s];

uint direction, row0;

uint row_of(uint i) { return min(row0 + i, batch - 1); }
uint at_h(uint half_, uint i) { return ((half_ * directions + direction) * batch + row_of(i)) * vec4s; }
uint at_reset(uint i) { return (direction * batch + row_of(i)) * vec4s; }

vec4 load_h(uint half_, uint i, uint k4) {
  return kForm == 0 ? shared_rows[(half_ * kRows + i) * vec4s + k4] : h4[at_h(half_, i) + k4];
}
float load_unit(uint half_, uint i, uint j) {
  return kForm == 0 ? shared_rows[(half_ * kRows + i) * vec4s + j / 4][j % 4] : h[at_h(half_, i) * 4 + j];
}
vec4 load_reset(uint i, uint k4) {
  return kForm == 0 ? shared_rows[(2 * kRows + i) * vec4s + k4] : reset4[at_reset(i) + k4];
}
void store_unit(uint half_, uint i, uint j, float value) {
  if (kForm == 0) shared_rows[(half_ * kRows + i) * vec4s + j / 4][j % 4] = value;
  else h[at_h(half_, i) * 4 + j] = value;
}
void store_reset(uint i, uint j, float value) {
  if (kForm == 0) shared_rows[(2 * kRows + i) * vec4s + j / 4][j % 4] = value;
  else reset[at_reset(i) * 4 + j] = value;
}
void synchronize() {
  if (kForm == 0) barrier();
}

// sum[i][gate] = h (or reset * h) of row i times r of the gates [from, to).
void multiply(uint half_, bool from_reset, uint j, uint from, uint to, inout float sum[kRows][4]) {
  for (uint k4 = 0; k4 < vec4s; ++k4) {
    vec4 w[4];
    [[unroll]] for (uint g = 0; g < kGates; ++g)
      if (g >= from && g < to) w[g] = load_b(((direction * vec4s + k4) * kGates + g) * hidden + j);
    [[unroll]] for (uint i = 0; i < kRows; ++i) {
      vec4 operand = from_reset ? load_reset(i, k4) : load_h(half_, i, k4);
      [[unroll]] for (uint g = 0; g < kGates; ++g)
        if (g >= from && g < to) sum[i][g] += dot(operand, w[g]);
    }
  }
}

float bias_of(uint part, uint gate, uint j) {
  return kBias ? bias[((direction * 2 + part) * kGates + gate) * hidden + j] : 0.0;
}
// The peephole term of a gate; 0 without peepholes, even if the cell state is infinite.
float peephole_term(uint which, uint j, float state) {
  return kPeepholes ? peepholes[(direction * 3 + which) * hidden + j] * state : 0.0;
}

float lstm(float gate[4], uint j, uint at_c) {
  float before = c[at_c];
  float i = activate(direction, 0, gate[0] + peephole_term(0, j, before));
  float f = kInputForget ? 1.0 - i : activate(direction, 0, gate[2] + peephole_term(2, j, before));
  float now = f * before + i * activate(direction, 1, gate[3]);
  c[at_c] = now;
  return activate(direction, 0, gate[1] + peephole_term(1, j, now)) * activate(direction, 2, now);
}

// Unit j of row i after step s, from the matmuls in `sum`.
void finish_unit(uint s, uint half_, uint i, uint j, float sum[4]) {
  uint n = row0 + i;
  if (n >= batch) return;
  uint len = length_of(n);
  float before = load_unit(half_, i, j);
  if (s >= len) {
    store_unit(1 - half_, i, j, before);
    y[((s * directions + direction) * batch + n) * hidden + j] = 0.0;
    return;
  }
  uint t = time_of(s, len, direction);
  uint at_x = ((t * batch + n) * directions + direction) * kGates * hidden + j;
  float gate[4];
  [[unroll]] for (uint g = 0; g < kGates; ++g) {
    gate[g] = from_x[at_x + g * hidden] + bias_of(0, g, j);
    if (!(kCell == 1 && g == 2)) gate[g] += sum[g] + bias_of(1, g, j);
  }
  float now;
  if (kCell == 0) {
    now = lstm(gate, j, (direction * batch + n) * hidden + j);
  } else if (kCell == 1) {
    float z = activate(direction, 0, gate[0]);
    float candidate = sum[2] + bias_of(1, 2, j);
    if (kLinear) candidate *= activate(direction, 0, gate[1]);
    now = (1.0 - z) * activate(direction, 1, gate[2] + candidate) + z * before;
  } else {
    now = activate(direction, 0, gate[0]);
  }
  store_unit(1 - half_, i, j, now);
  y[((t * directions + direction) * batch + n) * hidden + j] = now;
}

// reset * h of row i, unit j.
void reset_unit(uint s, uint half_, uint i, uint j, float sum) {
  uint n = row0 + i;
  if (n >= batch) return;
  uint len = length_of(n);
  if (s >= len) return;
  uint t = time_of(s, len, direction);
  float gate = from_x[(((t * batch + n) * directions + direction) * kGates + 1) * hidden + j];
  gate += bias_of(0, 1, j) + bias_of(1, 1, j) + sum;
  store_reset(i, j, activate(direction, 0, gate) * load_unit(half_, i, j));
}

void step(uint s, uint begin, uint end) {
  uint half_ = s & 1u;
  if (kReset && (phases & 1u) != 0) {
    for (uint j = begin + gl_LocalInvocationID.x; j < end; j += gl_WorkGroupSize.x) {
      float sum[kRows][4];
      [[unroll]] for (uint i = 0; i < kRows; ++i) sum[i][1] = 0.0;
      multiply(half_, false, j, 1, 2, sum);
      [[unroll]] for (uint i = 0; i < kRows; ++i) reset_unit(s, half_, i, j, sum[i][1]);
    }
    synchronize();
  }
  if ((phases & 2u) == 0) return;
  for (uint j = begin + gl_LocalInvocationID.x; j < end; j += gl_WorkGroupSize.x) {
    float sum[kRows][4];
    [[unroll]] for (uint i = 0; i < kRows; ++i) [[unroll]] for (uint g = 0; g < 4; ++g) sum[i][g] = 0.0;
    if (kReset) {
      multiply(half_, false, j, 0, 1, sum);
      multiply(half_, true, j, 2, 3, sum);
    } else {
      multiply(half_, false, j, 0, kGates, sum);
    }
    [[unroll]] for (uint i = 0; i < kRows; ++i) finish_unit(s, half_, i, j, sum[i]);
  }
}

void main() {
  uint group = group_index();
  uint unit_group = group % unit_groups;
  group /= unit_groups;
  direction = group % directions;
  row0 = group / directions * kRows;
  if (row0 >= batch) return;
  uint begin = unit_group * units;
  uint end = min(begin + units, hidden);
  if (kForm == 0) {
    for (uint i = gl_LocalInvocationID.x; i < kSharedVec4s; i += gl_WorkGroupSize.x) {
      uint half_ = first & 1u;
      uint at = i - half_ * kRows * vec4s;  // wraps to a large value if i is smaller
      shared_rows[i] = at < kRows * vec4s ? h4[at_h(half_, at / vec4s) + at % vec4s] : vec4(0.0);
    }
    barrier();
  }
  for (uint s = first; s < last; ++s) {
    step(s, begin, end);
    synchronize();
  }
  if (kForm == 0)
    for (uint j = gl_LocalInvocationID.x; j < hidden; j += gl_WorkGroupSize.x)
      for (uint i = 0; i < kRows; ++i)
        if (row0 + i < batch)
          h[at_h(last & 1u, i) * 4 + j] = shared_rows[((last & 1u) * kRows + i) * vec4s + j / 4][j % 4];
}
