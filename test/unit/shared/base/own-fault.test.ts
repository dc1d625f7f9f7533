import { describe, expect, test } from "vitest";
import { StarlingError } from "#shared/base/errors.ts";
import { isOwnFault } from "#shared/base/own-fault.ts";

/** As Node makes them. */
function failed(code: string): Error {
  return Object.assign(new Error(`connect ${code} 10.0.0.1:443`), { code, syscall: "connect" });
}

describe("the fault is ours", () => {
  test.each(["EMFILE", "ENFILE", "ENOBUFS", "ENOMEM", "EAGAIN"])("where this process lacks something: %s", (code) => {
    expect(isOwnFault(failed(code))).toBe(true);
  });

  test("also behind what an adapter made of it", () => {
    const cause = new Error("again", { cause: failed("EMFILE") });
    const told = new StarlingError("STS was not asked", { code: "StsUnavailable", retry: "transient", cause });
    expect(isOwnFault(told)).toBe(true);
  });
});

test.each<[string, unknown]>([
  ["a server that refuses", failed("ECONNREFUSED")],
  ["a name that nobody knows", failed("ENOTFOUND")],
  // Where a sandbox has no IPv6, every cluster at such an address answers so.
  ["an address of no network of ours", failed("EADDRNOTAVAIL")],
  ["a resolver that is away", failed("EAI_AGAIN")],
  ["an error that only speaks of it", new Error("EMFILE")],
  ["nothing", undefined],
])("the fault is not ours with %s", (_what, error) => {
  expect(isOwnFault(error)).toBe(false);
});
