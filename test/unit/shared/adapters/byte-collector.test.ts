import { expect, test } from "vitest";
import { ByteCollector } from "#shared/adapters/byte-collector.ts";

const kib = 1024;

test("the collector returns pieces of any size in their order, byte for byte", () => {
  const collector = new ByteCollector(1024 * kib);
  const sizes = [1, 0, 3, 64 * kib, 7, 200 * kib, 1];
  const pieces = sizes.map((size, index) => new Uint8Array(size).fill(index + 1));
  for (const piece of pieces) expect(collector.add(piece)).toBe(true);
  expect(collector.bytes().equals(Buffer.concat(pieces))).toBe(true);
});

test("a piece that would exceed the limit is not added, not even a part of it", () => {
  const collector = new ByteCollector(10);
  expect(collector.add(Uint8Array.of(1, 2, 3, 4, 5, 6))).toBe(true);
  expect(collector.add(Uint8Array.of(7, 8, 9, 10, 11))).toBe(false);
  expect([...collector.bytes()]).toEqual([1, 2, 3, 4, 5, 6]);
  expect(collector.add(Uint8Array.of(7, 8, 9, 10))).toBe(true);
  expect(collector.add(Uint8Array.of(11))).toBe(false);
  expect([...collector.bytes()]).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
});

test("a collected piece does not change when its sender overwrites the memory", () => {
  const collector = new ByteCollector(10);
  const piece = Uint8Array.of(1, 2);
  collector.add(piece);
  piece.fill(9);
  expect([...collector.bytes()]).toEqual([1, 2]);
});

test("the buffer doubles, so that many small pieces are not copied each time, and never exceeds the limit", () => {
  const collector = new ByteCollector(300 * kib);
  const room = () => collector.bytes().buffer.byteLength / kib;
  const rooms = [1, 64 * kib - 1, 1, 64 * kib, 1, 150 * kib].map((size) => {
    collector.add(new Uint8Array(size));
    return room();
  });
  expect(rooms).toEqual([64, 64, 128, 256, 256, 300]);
});
