// Entries of a sort: the element's value as a key of type K, smaller keys first, then its position along the axis. The
// position breaks ties, so that no two entries are equal. Padding has the largest key and a position past all others.
bool precedes(K key_a, uint position_a, K key_b, uint position_b) {
  return key_a != key_b ? key_a < key_b : position_a < position_b;
}
