// Searching in lists that are sorted.

/** The index of the first entry whose key is larger than a value. */
export function after(list, value, key) {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (key(list[middle]) <= value) low = middle + 1; else high = middle;
  }
  return low;
}
