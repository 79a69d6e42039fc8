// 8-bit values in storage of 32-bit words, which every device has.

// The value at `at`, of the word at / 4.
uint byte_of(uint word, uint at) { return (word >> (8 * (at % 4))) & 0xffu; }
