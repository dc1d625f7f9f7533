import type { Socket } from "node:net";

/** Carries the bytes of each socket to the other one, as they are, until one of them closes. @param open - has the sockets that are open. */
export function joinSockets(near: Socket, far: Socket, open: Set<Socket>): void {
  for (const [from, to] of [
    [near, far],
    [far, near],
  ] as const) {
    open.add(from);
    from.pipe(to);
    from.on("error", () => to.destroy());
    from.on("close", () => {
      open.delete(from);
      to.destroy();
    });
  }
}
