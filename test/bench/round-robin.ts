import type { MachineOptions } from "#local/machine/machine.ts";

type Sandboxes = NonNullable<MachineOptions["sandboxes"]>;

/**
 * So many sandboxes of one function, each with a memory of its own, which take turns: what one of them has learned the next
 * has to learn, too. Lambda uses the last one again, which a busy fleet never sees.
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
