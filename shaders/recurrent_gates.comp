#version 450
#extension GL_GOOGLE_include_directive : require
// Inputs of a recurrent net's backward pass; y has every h, so no sequential matmuls are needed here.
// kForm 0: previous, the h before each step. 1: the pre-activations, from the matmuls of x and of previous; a GRU's
// candidate, the operand of r's third block. 2: an LSTM's c before every step and after the last. 3: the gradient of
// the peepholes. Rows are [direction][time][batch]; `units` invocations.
#include "common.glsl"
#include "functions.glsl"
#include "recurrent.glsl"
layout(set = 0, binding = 0, std430) readonly buffer A { float a[]; };              // 0: y, 1: matmul of x
layout(set = 0, binding = 1, std430) readonly buffer B { float b[]; };              // 0: h0, 1: bias, 2: c0
layout(set = 0, binding = 2, std430) buffer Previous { float previous[]; };
layout(set = 0, binding = 3, std430) buffer Gates { float gates[]; };               // [row][gate][unit]
layout(set = 0, binding = 4, std430) buffer Result { float result[]; };             // 1: candidate, 3: gradient
layout(set = 0, binding = 5, std430) buffer States { float states[]; };             // 1: matmul of h, else [d][steps + 1][batch][unit]
layout(set = 0, binding = 6, std430) readonly buffer Peepholes { float peepholes[]; };  // [direction][i o f][unit]

uint direction, n, j;

float bias_of(uint part, uint gate) {
  return kBias ? b[((direction * 2 + part) * kGates + gate) * hidden + j] : 0.0;
}
float peephole(uint which) { return kPeepholes ? peepholes[(direction * 3 + which) * hidden + j] : 0.0; }
uint row_at(uint t) { return (direction * steps + t) * batch + n; }
uint state_at(uint s) { return ((direction * (steps + 1) + s) * batch + n) * hidden + j; }

void find_previous(uint i, uint t) {
  uint len = length_of(n);
  uint s = time_of(t, len, direction);
  float value = 0.0;
  if (t < len && s == 0) value = kFirstH ? b[(direction * batch + n) * hidden + j] : 0.0;
  if (t < len && s > 0) value = a[((time_of(s - 1, len, direction) * directions + direction) * batch + n) * hidden + j];
  previous[i] = value;
}

void find_gates(uint i, uint t) {
  uint at_x = ((t * batch + n) * directions + direction) * kGates * hidden + j;
  uint at = row_at(t) * kGates * hidden + j;
  [[unroll]] for (uint g = 0; g < kGates; ++g) {
    float from_x = a[at_x + g * hidden] + bias_of(0, g);
    float from_h = gates[at + g * hidden] + bias_of(1, g);
    if (kCell == 1 && g == 2) {
      if (kLinear) states[i] = from_h;
      else from_x += bias_of(1, g);
      from_h = 0.0;
    }
    gates[at + g * hidden] = from_x + from_h;
  }
  if (kCell == 1) {
    float reset = kLinear ? 1.0 : activate(direction, 0, gates[at + hidden]);
    result[i] = t < length_of(n) ? reset * previous[i] : 0.0;
  }
}

void find_states() {
  float c = kFirstC ? b[(direction * batch + n) * hidden + j] : 0.0;
  states[state_at(0)] = c;
  uint len = length_of(n);
  for (uint s = 0; s < len; ++s) {
    uint at = row_at(time_of(s, len, direction)) * 4 * hidden + j;
    float i = activate(direction, 0, gates[at] + peephole(0) * c);
    float f = kInputForget ? 1.0 - i : activate(direction, 0, gates[at + 2 * hidden] + peephole(2) * c);
    c = f * c + i * activate(direction, 1, gates[at + 3 * hidden]);
    states[state_at(s + 1)] = c;
  }
}

void sum_peepholes(uint which) {
  float sum = 0.0;
  for (n = 0; n < batch; ++n) {
    uint len = length_of(n);
    for (uint s = 0; s < len; ++s)
      sum += gates[(row_at(time_of(s, len, direction)) * 4 + which) * hidden + j] * states[state_at(which == 1 ? s + 1 : s)];
  }
  result[(direction * 3 + which) * hidden + j] = sum;
}

void main() {
  uint i = invocation_index();
  if (i >= units) return;
  j = i % hidden;
  uint rest = i / hidden;
  if (kForm == 3) {
    direction = rest / 3;
    sum_peepholes(rest % 3);
    return;
  }
  n = rest % batch;
  rest /= batch;
  if (kForm == 2) {
    direction = rest;
    find_states();
    return;
  }
  direction = rest / steps;
  if (kForm == 0) find_previous(i, rest % steps);
  else find_gates(i, rest % steps);
}
