/** Starts and stops things for tests, without a variable and two hooks in each suite. */
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";

interface Started {
  stop(): void | Promise<void>;
}

/**
 * Starts a thing before the first test of the current file or `describe`, and stops it after the last one. The result
 * is a proxy of the started thing. It is usable in tests and in hooks that are registered later.
 */
export function forAllTests<Thing extends Started>(start: () => Promise<Thing>): Thing {
  const { thing, begin, end } = standIn(start);
  beforeAll(begin);
  afterAll(end);
  return thing;
}

/** Like `forAllTests`, with a new thing for each test. */
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
    /** If `start` threw, there is nothing to stop. */
    async end() {
      await started?.stop();
      started = undefined;
    },
  };
}
