#version 450
#extension GL_GOOGLE_include_directive : require
// Backward pass of an LSTM, GRU or RNN: gradients of every step's pre-activations, and of h.
// A workgroup has kRows rows of one direction and runs turns [first, last), the last step first, with all hidden units
// (kForm 0: the gates' gradients in shared memory), or `units` of them of one turn (kForm 1: in a buffer). A turn
// completes the following step by the matmul with r, then begins its own; the turn after the last only completes. A
// GRU's turn has two phases: the reset gate needs the matmul with r's third block.
// r is [direction][gate][h/4][unit] vec4 of four rows.
// variants: recurrent_grad_{buffer|texel TEXEL}
#include "common.glsl"
#include "functions.glsl"
#include "load.glsl"
#include "recurrent.glsl"
layout(set = 0, binding = 0, std430) buffer Block { float block[]; };  // [2][direction][batch][gate][vec4s * 4]
layout(set = 0, binding = 0, std430) buffer Block4 { vec4 block4[]; };
layout(set = 0, binding = 2, std430) readonly buffer Gates { float gates[]; };     // [direction][time][batch][gate][unit]
layout(set = 0, binding = 3, std430) buffer GradGates { float grad_gates[]; };     // as Gates
layout(set = 0, binding = 4, std430) readonly buffer GradY { float grad_y[]; };    // [time][direction][batch][unit]
// LSTM: c [direction][steps + 1][batch][unit]; GRU: the h before each step, [direction][time][batch][unit]
layout(set = 0, binding = 5, std430) readonly buffer Before { float before[]; };
// LSTM: peepholes [direction][i o f][unit]; GRU: matmul with r's third block, as h
layout(set = 0, binding = 6, std430) readonly buffer Extra { float extra[]; };
layout(set = 0, binding = 8, std430) buffer GradH { float grad_h[]; };             // [direction][batch][unit]
// LSTM: gradient of c, as GradH; GRU: of the matmul with r's third block
layout(set = 0, binding = 9, std430) buffer GradOther { float grad_other[]; };
shared vec4 shared_rows[kSharedVec4s];  // [2][kRows][gate][vec4s]

uint direction, row0;

uint row_of(uint i) { return min(row0 + i, batch - 1); }
uint at_block(uint half_, uint i, uint g) {
  return kForm == 0 ? ((half_ * kRows + i) * kGates + g) * vec4s
                    : (((half_ * directions + direction) * batch + row_of(i)) * kGates + g) * vec4s;
}
vec4 load_block(uint half_, uint i, uint g, uint j4) {
  return kForm == 0 ? shared_rows[at_block(half_, i, g) + j4] : block4[at_block(half_, i, g) + j4];
}
void store_block(uint half_, uint i, uint g, uint j, float value) {
  if (kForm == 0) shared_rows[at_block(half_, i, g) + j / 4][j % 4] = value;
  else block[at_block(half_, i, g) * 4 + j] = value;
}
void synchronize() {
  if (kForm == 0) barrier();
}

// sum[i] = gradients of the gates [from, to) of row i times column k of r.
void multiply(uint half_, uint k, uint from, uint to, inout float sum[kRows]) {
  for (uint g = from; g < to; ++g)
    for (uint j4 = 0; j4 < vec4s; ++j4) {
      vec4 w = load_b(((direction * kGates + g) * vec4s + j4) * hidden + k);
      [[unroll]] for (uint i = 0; i < kRows; ++i) sum[i] += dot(load_block(half_, i, g, j4), w);
    }
}

float peephole(uint which, uint j) {
  return kPeepholes ? extra[(direction * 3 + which) * hidden + j] : 0.0;
}

void store_gate(uint half_, uint i, uint row, uint g, uint j, float value) {
  grad_gates[(row * kGates + g) * hidden + j] = value;
  store_block(half_, i, g, j, value);
}

void back_lstm(uint s, uint half_, uint i, uint row, uint j, float from_h) {
  uint n = row0 + i;
  uint at = row * 4 * hidden + j;
  uint at_c = ((direction * (steps + 1) + s) * batch + n) * hidden + j;
  float c_before = before[at_c];
  float c = before[at_c + batch * hidden];
  float pre_i = gates[at] + peephole(0, j) * c_before;
  float pre_o = gates[at + hidden] + peephole(1, j) * c;
  float pre_f = gates[at + 2 * hidden] + peephole(2, j) * c_before;
  float pre_g = gates[at + 3 * hidden];
  float gate_i = activate(direction, 0, pre_i);
  float gate_f = kInputForget ? 1.0 - gate_i : activate(direction, 0, pre_f);
  float gate_g = activate(direction, 1, pre_g);
  float grad_o = from_h * activate(direction, 2, c) * slope(direction, 0, pre_o);
  uint at_state = (direction * batch + n) * hidden + j;
  float grad_c = grad_other[at_state] + from_h * activate(direction, 0, pre_o) * slope(direction, 2, c) + grad_o * peephole(1, j);
  float grad_i = grad_c * (gate_g - (kInputForget ? c_before : 0.0)) * slope(direction, 0, pre_i);
  float grad_f = kInputForget ? 0.0 : grad_c * c_before * slope(direction, 0, pre_f);
  float grad_g = grad_c * gate_i * slope(direction, 1, pre_g);
  grad_other[at_state] = grad_c * gate_f + grad_i * peephole(0, j) + grad_f * peephole(2, j);
  store_gate(half_, i, row, 0, j, grad_i);
  store_gate(half_, i, row, 1, j, grad_o);
  store_gate(half_, i, row, 2, j, grad_f);
  store_gate(half_, i, row, 3, j, grad_g);
}

// All gates but the reset gate; returns the part of h's gradient that goes straight to the previous h.
float back_gru(uint half_, uint i, uint row, uint j, float from_h) {
  uint at = row * 3 * hidden + j;
  uint at_h = row * hidden + j;
  float reset = kLinear ? activate(direction, 0, gates[at + hidden]) : 1.0;
  float update = activate(direction, 0, gates[at]);
  float pre = gates[at + 2 * hidden] + reset * extra[at_h];
  float grad = from_h * (1.0 - update) * slope(direction, 1, pre);
  store_gate(half_, i, row, 0, j, from_h * (before[at_h] - activate(direction, 1, pre)) * slope(direction, 0, gates[at]));
  grad_gates[at + 2 * hidden] = grad;
  grad_other[at_h] = grad * reset;
  store_block(half_, i, 2, j, grad * reset);
  return from_h * update;
}

void begin_step(uint s, uint half_, uint i, uint j, float sum) {
  uint n = row0 + i;
  if (n >= batch) return;
  uint at_state = (direction * batch + n) * hidden + j;
  float here = grad_h[at_state] + sum;
  if (s < steps) {
    uint len = length_of(n);
    uint t = time_of(s, len, direction);
    uint row = (direction * steps + t) * batch + n;
    if (s >= len) {
      [[unroll]] for (uint g = 0; g < kGates; ++g) store_gate(half_, i, row, g, j, 0.0);
      if (kCell == 1) grad_other[row * hidden + j] = 0.0;
    } else {
      if (kGradY) here += grad_y[((t * directions + direction) * batch + n) * hidden + j];
      if (kCell == 0) {
        back_lstm(s, half_, i, row, j, here);
        here = 0.0;
      } else if (kCell == 1) {
        here = back_gru(half_, i, row, j, here);
      } else {
        store_gate(half_, i, row, 0, j, here * slope(direction, 0, gates[row * hidden + j]));
        here = 0.0;
      }
    }
  }
  grad_h[at_state] = here;
}

// The reset gate; `through`: the gradient of the operand of r's third block.
void reset_step(uint s, uint half_, uint i, uint j, float through) {
  uint n = row0 + i;
  if (n >= batch) return;
  uint len = length_of(n);
  if (s >= len) return;
  uint row = (direction * steps + time_of(s, len, direction)) * batch + n;
  uint at = row * 3 * hidden + j;
  uint at_h = row * hidden + j;
  float pre = gates[at + hidden];
  float grad = kLinear ? grad_gates[at + 2 * hidden] * extra[at_h] : through * before[at_h];
  store_gate(half_, i, row, 1, j, grad * slope(direction, 0, pre));
  grad_h[(direction * batch + n) * hidden + j] += through * (kLinear ? 1.0 : activate(direction, 0, pre));
}

void turn(uint number, uint begin, uint end) {
  uint s = steps - 1 - number;  // wraps in the turn after the last step
  uint half_ = number & 1u;
  if ((phases & 1u) != 0)
    for (uint j = begin + gl_LocalInvocationID.x; j < end; j += gl_WorkGroupSize.x) {
      float sum[kRows];
      [[unroll]] for (uint i = 0; i < kRows; ++i) sum[i] = 0.0;
      if (number > 0) multiply(1 - half_, j, 0, kCell == 1 ? 2 : kGates, sum);
      [[unroll]] for (uint i = 0; i < kRows; ++i) begin_step(s, half_, i, j, sum[i]);
    }
  if (kCell != 1 || (phases & 2u) == 0 || number == steps) return;
  synchronize();
  for (uint j = begin + gl_LocalInvocationID.x; j < end; j += gl_WorkGroupSize.x) {
    float sum[kRows];
    [[unroll]] for (uint i = 0; i < kRows; ++i) sum[i] = 0.0;
    multiply(half_, j, 2, 3, sum);
    [[unroll]] for (uint i = 0; i < kRows; ++i) reset_step(s, half_, i, j, sum[i]);
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
    for (uint i = gl_LocalInvocationID.x; i < kSharedVec4s; i += gl_WorkGroupSize.x) shared_rows[i] = vec4(0.0);
    barrier();
  }
  for (uint number = first; number < last; ++number) {
    turn(number, begin, end);
    synchronize();
  }
}
