/** Bytes that are nearly those of a sample. The same seed makes the same bytes. */

/** Numbers from 0 to 1 (mulberry32). */
export function numbersFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Parsers often take these for something else. */
const tokens = [
  ...[
    "\0",
    "\n",
    "\r\n",
    " ",
    "\t",
    '"',
    "'",
    "\\",
    "/",
    "../",
    ":",
    "-",
    "|",
    ">",
    "*a",
    "&a ",
    "!!",
    "{",
    "}",
    "[",
    "]",
  ],
  ...[
    "0000",
    "0001",
    "ffff",
    "-1",
    "1e309",
    "99999999999999999999",
    "null",
    "true",
    "__proto__",
    "\u001b[2J",
    "=",
    ",",
    "#",
  ],
].map((text) => Buffer.from(text));
const edges = [0x00, 0x01, 0x7f, 0x80, 0xfe, 0xff, 0x0a, 0x20, 0x30, 0x39];
const mostChanges = 6;
const mostRepeats = 2000;
const mostBytes = 256 * 1024;

export function mutate(samples: readonly Buffer[], next: () => number): Buffer {
  const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(next() * items.length)] as Item;
  const place = (bytes: Buffer) => Math.floor(next() * (bytes.length + 1));
  const part = (bytes: Buffer) => {
    const [from, to] = [place(bytes), place(bytes)].sort((a, b) => a - b) as [number, number];
    return bytes.subarray(from, Math.min(to, from + 1 + Math.floor(next() * 64)));
  };
  const insert = (bytes: Buffer, more: Buffer) => {
    const at = place(bytes);
    return Buffer.concat([bytes.subarray(0, at), more, bytes.subarray(at)]);
  };
  const changes: readonly ((bytes: Buffer) => Buffer)[] = [
    (bytes) => replaced(bytes, place(bytes), (byte) => byte ^ (1 << Math.floor(next() * 8))),
    (bytes) => replaced(bytes, place(bytes), () => pick(edges)),
    (bytes) => replaced(bytes, place(bytes), () => Math.floor(next() * 256)),
    (bytes) => bytes.subarray(0, place(bytes)),
    (bytes) => {
      const at = place(bytes);
      return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1 + Math.floor(next() * 16))]);
    },
    (bytes) => insert(bytes, part(bytes)),
    (bytes) => insert(bytes, part(pick(samples))),
    (bytes) => insert(bytes, pick(tokens)),
    (bytes) => insert(bytes, Buffer.concat(Array(1 + Math.floor(next() * mostRepeats)).fill(pick(tokens)))),
  ];
  let bytes = pick(samples);
  const count = 1 + Math.floor(next() * mostChanges);
  for (let change = 0; change < count; change++) bytes = pick(changes)(bytes);
  return Buffer.from(bytes.subarray(0, mostBytes));
}

function replaced(bytes: Buffer, at: number, byteOf: (byte: number) => number): Buffer {
  const copy = Buffer.from(bytes);
  if (at < copy.length) copy[at] = byteOf(copy[at] ?? 0);
  return copy;
}
