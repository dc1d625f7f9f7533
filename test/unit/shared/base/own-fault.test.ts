import { describe, expect, test } from "vitest";
import { StarlingError } from "#shared/base/errors.ts";
import { isOwnFault } from "#shared/base/own-fault.ts";

/** An error as Node makes it. */
function failed(code: string): Error {
  return Object.assign(new Error(`connect ${code} 10.0.0.1:443`), { code, syscall: "connect" });
}

describe("the fault is Starling's own", () => {
  test.each(["EMFILE", "ENFILE", "ENOBUFS", "ENOMEM", "EAGAIN"])(
    "a process that lacks a resource has the fault: %s",
    (code) => {
      expect(isOwnFault(failed(code))).toBe(true);
    },
  );

  test.each(["DataRoleDenied", "DataRoleUnavailable"] as const)(
    "a worker without a session for its own rows has the fault, also as the cause of a refused write: %s",
    (code) => {
      const cause = new StarlingError("no session", { code, retry: "transient" });
      expect(isOwnFault(cause)).toBe(true);
      expect(isOwnFault(new StarlingError("S3 refused", { code: "BlobStoreBusy", retry: "transient", cause }))).toBe(
        true,
      );
    },
  );

  test("a lack of resources counts also as the cause of an adapter's error", () => {
    const cause = new Error("again", { cause: failed("EMFILE") });
    const wrapped = new StarlingError("STS was not asked", { code: "StsUnavailable", retry: "transient", cause });
    expect(isOwnFault(wrapped)).toBe(true);
  });
});

test.each<[string, unknown]>([
  ["a server that refuses", failed("ECONNREFUSED")],
  ["an unknown host name", failed("ENOTFOUND")],
  // If a sandbox has no IPv6, connections to each cluster with an IPv6 address fail in this way.
  ["an address that no local network can reach", failed("EADDRNOTAVAIL")],
  ["a resolver that does not answer", failed("EAI_AGAIN")],
  ["an error whose message only mentions a lack", new Error("EMFILE")],
  ["nothing", undefined],
])("the fault is not Starling's with %s", (_what, error) => {
  expect(isOwnFault(error)).toBe(false);
});
