import type { MachineOptions } from "#local/machine/machine.ts";

type Sandboxes = NonNullable<MachineOptions["sandboxes"]>;

/**
 * Invokes this number of sandboxes of one function in turn. Each has its own memory, so caches of one do not help the next.
 * Lambda prefers the sandbox that it used last, but with a busy fleet that one is rarely free.
 */
export function roundRobin(functionName: string, count: number): Sandboxes {
  const handlers: ReturnType<Parameters<Sandboxes>[1]>[] = [];
  let next = 0;
  return (name, wire) => {
    if (name !== functionName) return wire();
    return (event, context) => {
      const index = next++ % count;
      const handler = handlers[index] ?? wire();
      handlers[index] = handler;
      return handler(event, context);
    };
  };
}
