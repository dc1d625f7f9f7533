/** Writes at an API server that come to nothing yet; one of these at a time. */
import type { InterceptedRequest, Interception } from "@starling/embedded-apiserver";
import type { World } from "#test/support/e2e-world.ts";

export interface HeldWrites {
  /** Whether somebody waits for an answer. */
  isHeld(): boolean;
  release(): void;
}

/** Writes below this path are not answered before they are released. */
export function holdWrites(world: World, cluster: string, path: string): HeldWrites {
  const released = Promise.withResolvers<Interception>();
  let held = false;
  world.fleet.intercept((request) => {
    if (!isWrite(request, cluster, path)) return "pass";
    held = true;
    return released.promise;
  });
  return {
    isHeld: () => held,
    release() {
      released.resolve("pass");
      world.fleet.intercept(undefined);
    },
  };
}

/** The API server is too busy for writes below this path. @returns what ends that. */
export function refuseWrites(world: World, cluster: string, path: string): () => void {
  world.fleet.intercept((request) => (isWrite(request, cluster, path) ? unavailable : "pass"));
  return () => world.fleet.intercept(undefined);
}

function isWrite({ cluster, method, path, phase }: InterceptedRequest, of: string, below: string): boolean {
  return cluster === of && method !== "GET" && phase === "before" && path.startsWith(below);
}

const unavailable: Interception = {
  status: 503,
  body: { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message: "try again", code: 503 },
};
