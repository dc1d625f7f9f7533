import { PerformanceObserver } from "node:perf_hooks";

/** The use of a process over some time. */
export interface ProcessUse {
  /** User and system time. */
  readonly processorSeconds: number;
  /** The time in which garbage collection stopped the process. */
  readonly garbageSeconds: number;
}

/** Measures this process from now on. */
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
