/** Parsers with the faults that fuzzing has to find. */
import { StarlingError } from "#shared/base/errors.ts";
import type { FuzzedParser } from "#test/support/fuzz/fuzzed-parser.ts";

const sample = Buffer.from("sample");
const kept: Buffer[] = [];

function faulty(name: string, run: (bytes: Buffer) => unknown): FuzzedParser {
  return {
    name,
    samples: () => [sample],
    run: (bytes) => (bytes.equals(sample) && name !== "refuses" ? "" : run(bytes)),
  };
}

export const faultyParsers: readonly FuzzedParser[] = [
  faulty("hangs", () => {
    for (;;);
  }),
  faulty("throws", () => {
    throw new RangeError("what is this");
  }),
  faulty("grows", () => void kept.push(Buffer.alloc(400 * 1024 * 1024, 1))),
  faulty("computes", () => {
    const before = process.cpuUsage();
    for (
      let used = before;
      used.user + used.system - before.user - before.system < 3_100_000;
      used = process.cpuUsage()
    );
  }),
  faulty("exits", () => process.exit(3)),
  faulty("refuses", () => {
    throw new StarlingError("no", { code: "ArchiveInvalid", retry: "permanent" });
  }),
];
