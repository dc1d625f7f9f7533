import { PerformanceObserver } from "node:perf_hooks";

/** What a process took in a while. */
export interface ProcessUse {
  /** User and system time. */
  readonly processorSeconds: number;
  /** In which it stood still for its garbage. */
  readonly garbageSeconds: number;
}

/** Of this process, from now on until it is read. */
export function watchProcess(): { read(): ProcessUse } {
  let garbageMs = 0;
  const observer = new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) garbageMs += duration;
  });
  observer.observe({ entryTypes: ["gc"] });
  const before = process.cpuUsage();
  return {
    read() {
      observer.disconnect();
      const { user, system } = process.cpuUsage(before);
      return { processorSeconds: (user + system) / 1e6, garbageSeconds: garbageMs / 1000 };
    },
  };
}
