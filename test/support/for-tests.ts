/** What tests start and stop, without a variable and two hooks in each suite. */
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";

interface Started {
  stop(): void | Promise<void>;
}

/**
 * Started before the first test of the file or `describe` that this is called in, stopped after the last. What it gives
 * stands for what was started, and is there in tests and in hooks that are registered later.
 */
export function forAllTests<Thing extends Started>(start: () => Promise<Thing>): Thing {
  const { thing, begin, end } = standIn(start);
  beforeAll(begin);
  afterAll(end);
  return thing;
}

/** The same, anew for each test. */
export function forEachTest<Thing extends Started>(start: () => Promise<Thing>): Thing {
  const { thing, begin, end } = standIn(start);
  beforeEach(begin);
  afterEach(end);
  return thing;
}

function standIn<Thing extends Started>(start: () => Promise<Thing>) {
  let started: Thing | undefined;
  const thing = new Proxy({} as Thing, {
    get(_target, name) {
      if (started === undefined)
        throw new Error(`${String(name)} is asked for while nothing is started: do so in a test`);
      const member: unknown = Reflect.get(started, name, started);
      return typeof member === "function" ? member.bind(started) : member;
    },
  });
  return {
    thing,
    async begin() {
      started = await start();
    },
    /** Nothing was started where `start` threw. */
    async end() {
      await started?.stop();
      started = undefined;
    },
  };
}
